"""Combines repeated samples of a judgment and the labels of several judges, and reads the verdicts of games."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.ratings.games import GameVerdict
from arena.store import Result, Wanted
from judges.errors import RETRIED_NEXT_RUN
from judges.spec import Combine
from judges.types import GAME_OUTCOMES, LABEL, GameOutcome, JudgeFailure, Judgment, Outcome, Verdict

LabelResults: TypeAlias = dict[tuple[str, str], Result | None]
"""Results of relevance judgments by (query_id, doc_id); ``None`` for a judgment that has no result yet."""


class Consistency(Struct, frozen=True):
    """How often a judge's repeated samples of the same judgment agree.

    Attributes:
        agreement: share of equal outcomes among pairs of samples of the same judgment; ``None`` without a pair.
        repeated: number of judgments with at least two samples.
    """

    agreement: float | None
    repeated: int


def of_each_judge(results: Iterable[tuple[Wanted, Result | None]]) -> dict[str, LabelResults]:
    by_judge: defaultdict[str, LabelResults] = defaultdict(dict)
    for want, result in results:
        by_judge[want.judge][want.query_id, want.item] = result
    return dict(by_judge)


def document_labels(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine], across: Combine
) -> LabelResults:
    """One relevance label for each (query_id, doc_id), combined over samples and judges.

    The samples of each judge are combined first, so that a judge with more samples has no more weight. If the next run
    retries a judge's failure on a document, the document has no label until then: answer judges see the labels, and a
    label that changed later would make their judgments obsolete.

    Args:
        results: planned relevance judgments with their results, in plan order.
        how: method that combines the samples of a judge, by the judge's name.
        across: method that combines the labels of several judges, see ``combine``.
    """
    each = list(results)
    retried = {
        (want.query_id, want.item): result
        for want, result in each
        if isinstance(result, JudgeFailure) and result.cause in RETRIED_NEXT_RUN
    }
    by_document: defaultdict[tuple[str, str], list[Result | None]] = defaultdict(list)
    for want, result in combined(each, how):
        by_document[want.query_id, want.item].append(result)
    labels = {
        document: judged[0] if len(judged) == 1 else combine(judged, across) for document, judged in by_document.items()
    }
    return labels | retried


def combined(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine]
) -> list[tuple[Wanted, Result | None]]:
    """Combine the samples of each judgment into one result; ``results`` must have them next to each other."""
    each = list(results)
    return list(each_combined(each, how)) if _repeated(each) else each


def each_combined(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine]
) -> Iterator[tuple[Wanted, Result | None]]:
    """Like ``combined``, but yield one result at a time."""
    for want, group in groupby(results, key=_first_sample):
        samples = [result for _, result in group]
        yield want, samples[0] if len(samples) == 1 else combine(samples, how.get(want.judge, "majority"))


def _repeated(results: Iterable[tuple[Wanted, Result | None]]) -> bool:
    return any(want.sample for want, _ in results)


def _first_sample(entry: tuple[Wanted, Result | None]) -> Wanted:
    want = entry[0]
    return replace(want, sample=0) if want.sample else want


def combine(samples: Sequence[Result | None], how: Combine) -> Result | None:
    """Combine several samples into one result; its reason is from a sample with the combined outcome, if any.

    ``majority`` takes the most frequent outcome; if several are equally frequent, the verdict ``TIE``, or the lowest
    label or grade. ``median`` takes the lower median of labels and grades. ``mean`` takes the average; average labels
    are rounded, halves down. For ``median`` and ``mean``, verdicts count as 1 (A), 0 (tie) and -1 (B), and the sign of
    the median or average is the combined verdict.

    Returns ``None`` if any sample has no result yet, and a failure if more than half of the samples failed.
    """
    judged = [sample for sample in samples if isinstance(sample, Judgment)]
    if None in samples:
        return None
    if 2 * len(judged) < len(samples):
        return next(sample for sample in samples if not isinstance(sample, Judgment))
    representative = _representative(judged, how)
    outcomes = [judgment.outcome for judgment in judged]
    return replace(representative, outcome=_outcome(outcomes, how, representative.outcome))


def _representative(judged: Sequence[Judgment], how: Combine) -> Judgment:
    """The first judgment whose outcome, apart from texts, is the combined one; if there is none, the first judgment."""
    combined_choices = _choices(_outcome([judgment.outcome for judgment in judged], how, judged[0].outcome))
    return next((judgment for judgment in judged if _choices(judgment.outcome) == combined_choices), judged[0])


def consistency(results: Iterable[tuple[Wanted, Result | None]]) -> dict[str, Consistency]:
    """Agreement among the repeated samples of each judge; judges without repeated samples are left out."""
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    each = list(results)
    for want, group in groupby(each if _repeated(each) else (), key=_first_sample):
        choices = Counter(_choices(result.outcome) for _, result in group if isinstance(result, Judgment))
        if (number := choices.total()) > 1:
            repeated[want.judge] += 1
            pairs[want.judge] += math.comb(number, 2)
            equal[want.judge] += sum(math.comb(times, 2) for times in choices.values())
    return {judge: Consistency(equal[judge] / pairs[judge], repeated[judge]) for judge in repeated}


def _outcome(outcomes: Sequence[Outcome], how: Combine, texts: Outcome) -> Outcome:
    if isinstance(texts, tuple):
        return texts
    if not isinstance(texts, Mapping):
        plain: int | str = _value([each for each in outcomes if isinstance(each, int | str)], how, whole=True)
        return plain
    fields = [outcome for outcome in outcomes if isinstance(outcome, Mapping)]
    return {
        name: text if isinstance(text, str) else _value([each[name] for each in fields], how, whole=name == LABEL)
        for name, text in texts.items()
    }


def _choices(outcome: Outcome) -> object:
    """The parts of an outcome that samples are compared by: all but its free texts."""
    if not isinstance(outcome, Mapping):
        return outcome
    return tuple((name, value) for name, value in outcome.items() if not isinstance(value, str))


def _value(values: Sequence[float | str], how: Combine, *, whole: bool) -> Any:
    if isinstance(values[0], str):
        return _verdict([str(value) for value in values], how)
    numbers = [value for value in values if not isinstance(value, str)]
    # On a tie the lowest label, because a tie among judges should not make a document relevant. The mean of the two
    # middle labels may be off the scale, and only half of the judges gave the upper one or a higher one.
    if how == "majority":
        combined = min(statistics.multimode(numbers))
    else:
        combined = statistics.median_low(numbers) if how == "median" else statistics.fmean(numbers)
    return math.ceil(combined - 0.5) if whole else combined


def _verdict(verdicts: Sequence[str], how: Combine) -> str:
    if how == "majority":
        counts = Counter(verdicts)
        most = [verdict for verdict, times in counts.items() if times == max(counts.values())]
        return most[0] if len(most) == 1 else Verdict.TIE.value
    outcomes = [GAME_OUTCOMES[verdict] for verdict in verdicts]
    middle = sum(outcomes) if how == "mean" else statistics.median(outcomes)
    return GameOutcome((middle > 0) - (middle < 0)).verdict.value


def game_verdicts(outcomes: Iterable[tuple[Wanted, Result | None]]) -> Iterable[GameVerdict]:
    """The verdicts of pairwise games, with the agent shown first as ``agent_a``; skips games without a judgment."""
    for want, result in outcomes:
        if isinstance(result, Judgment):
            yield GameVerdict(want.query_id, *want.shown, Verdict(str(result.outcome)), want.judge)
