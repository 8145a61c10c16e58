"""What outcomes come to: samples of one judgment as one outcome, labels of documents, verdicts of games."""

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
from arena.store.subjects import DocumentSubject, GameSubject
from judges.errors import RETRIED_NEXT_RUN
from judges.spec import Combine
from judges.types import LABEL, JudgeFailure, Judgment, Outcome, Verdict

LabelResults: TypeAlias = dict[tuple[str, str], Result | None]
"""By (query_id, doc_id): the relevance judgment, a failure, or ``None`` where nothing is known yet."""

_POINTS = {Verdict.A.value: 1, Verdict.TIE.value: 0, Verdict.B.value: -1}


class Consistency(Struct, frozen=True):
    """How often two samples of one judgment say the same.

    Attributes:
        agreement: share of equal outcomes among all pairs of samples of one thing, ``None`` without a pair.
        repeated: things with two samples or more.
    """

    agreement: float | None
    repeated: int


def of_each_judge(results: Iterable[tuple[Wanted, Result | None]]) -> dict[str, LabelResults]:
    """Relevance results, samples combined, by judge and (query_id, doc_id)."""
    found: defaultdict[str, LabelResults] = defaultdict(dict)
    for want, result in results:
        found[want.judge][DocumentSubject.of(want)] = result
    return dict(found)


def document_labels(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine], across: Combine
) -> LabelResults:
    """What all samples of all relevance judges come to, by (query_id, doc_id).

    Each judge's samples become one label first, so that a judge that is asked more often has no more say. A failure
    that the next run asks about again leaves the document without a label: answer judges are shown labels, and would
    have to be asked anew.

    Args:
        results: relevance wants with their results, in the order of the plan.
        how: by judge, how its samples become one.
        across: how several judges' labels become one; see ``combine``, a judge being a sample.
    """
    each = list(results)
    passing = {
        DocumentSubject.of(want): result
        for want, result in each
        if isinstance(result, JudgeFailure) and result.cause in RETRIED_NEXT_RUN
    }
    by_document: defaultdict[tuple[str, str], list[Result | None]] = defaultdict(list)
    for want, result in combined(each, how):
        by_document[DocumentSubject.of(want)].append(result)
    together = {
        document: found[0] if len(found) == 1 else combine(found, across) for document, found in by_document.items()
    }
    return together | passing


def combined(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine]
) -> list[tuple[Wanted, Result | None]]:
    """Samples of one thing, which stand together, as one result."""
    each = list(results)
    return list(each_combined(each, how)) if _repeated(each) else each


def each_combined(
    results: Iterable[tuple[Wanted, Result | None]], how: Mapping[str, Combine]
) -> Iterator[tuple[Wanted, Result | None]]:
    """The same as ``combined``, one by one."""
    for want, group in groupby(results, key=_thing):
        samples = [result for _, result in group]
        yield want, samples[0] if len(samples) == 1 else combine(samples, how.get(want.judge, "majority"))


def _repeated(results: Iterable[tuple[Wanted, Result | None]]) -> bool:
    return any(want.sample for want, _ in results)


def _thing(entry: tuple[Wanted, Result | None]) -> Wanted:
    """What was judged, whichever sample it is."""
    want = entry[0]
    return replace(want, sample=0) if want.sample else want


def combine(samples: Sequence[Result | None], how: Combine) -> Result | None:
    """One result of several: the outcome by ``how``, with the words of a sample that says so where there is one.

    Majority: the outcome that most samples have. Where several have as many, verdicts are a tie and labels and grades
    the lowest of them, so that a judge who cannot make up its mind claims less. Median: the lower one of labels and
    grades. Mean: labels and grades are averaged, a label to the nearest whole number (a half downwards). Median and
    mean count verdicts as 1, 0 and -1, and the sign decides.
    """
    judged = [sample for sample in samples if isinstance(sample, Judgment)]
    if None in samples:
        return None
    if 2 * len(judged) < len(samples):
        return next(sample for sample in samples if not isinstance(sample, Judgment))
    spokesman = _closest(judged, how)
    return replace(spokesman, outcome=_outcome([judgment.outcome for judgment in judged], how, spokesman.outcome))


def _closest(judged: Sequence[Judgment], how: Combine) -> Judgment:
    """The first sample whose choices are those of all together, else the first."""
    whole = _choices(_outcome([judgment.outcome for judgment in judged], how, judged[0].outcome))
    return next((judgment for judgment in judged if _choices(judgment.outcome) == whole), judged[0])


def consistency(results: Iterable[tuple[Wanted, Result | None]]) -> dict[str, Consistency]:
    """By judge, how far its samples agree; judges that were asked once are left out."""
    equal: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    each = list(results)
    for want, group in groupby(each if _repeated(each) else (), key=_thing):
        said = Counter(_choices(result.outcome) for _, result in group if isinstance(result, Judgment))
        if (number := said.total()) > 1:
            repeated[want.judge] += 1
            pairs[want.judge] += math.comb(number, 2)
            equal[want.judge] += sum(math.comb(times, 2) for times in said.values())
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
    """What can be compared of an outcome."""
    if not isinstance(outcome, Mapping):
        return outcome
    return tuple((name, value) for name, value in outcome.items() if not isinstance(value, str))


def _value(values: Sequence[float | str], how: Combine, *, whole: bool) -> Any:
    if isinstance(values[0], str):
        return _verdict([str(value) for value in values], how)
    from retrieval_eval.scores.relevance import majority, mean, median

    numbers = [value for value in values if not isinstance(value, str)]
    combined = {"majority": majority, "median": median, "mean": mean}[how](numbers)
    return math.ceil(combined - 0.5) if whole else combined


def _verdict(verdicts: Sequence[str], how: Combine) -> str:
    if how == "majority":
        counts = Counter(verdicts)
        most = [verdict for verdict, times in counts.items() if times == max(counts.values())]
        return most[0] if len(most) == 1 else Verdict.TIE.value
    points = [_POINTS[verdict] for verdict in verdicts]
    middle = sum(points) if how == "mean" else statistics.median(points)
    return (Verdict.A if middle > 0 else Verdict.B if middle < 0 else Verdict.TIE).value


def game_verdicts(outcomes: Iterable[tuple[Wanted, Result | None]]) -> Iterable[GameVerdict]:
    """The verdicts among the outcomes of pairwise wants, with the agent shown first as ``agent_a``."""
    for want, result in outcomes:
        if isinstance(result, Judgment):
            game = GameSubject.of(want)
            yield GameVerdict(want.query_id, game.first, game.second, Verdict(str(result.outcome)), want.judge)
