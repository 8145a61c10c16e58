"""The difference of two agents by their games or by another score, with what makes it doubtful."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.gate.figures import PAIRWISE, Compared, JudgesAs, OfJudges
from arena.config.settings import StoredSettings
from arena.present.numbers import P_VALUE, PERCENT, counted, listed
from arena.ratings.adaptive import outcomes_of
from arena.ratings.games import Games, Unit
from arena.ratings.other_judges import contributions, over_repeats, parts_of
from arena.ratings.results import MOST_JUDGES, UNITS, RatingSettings
from arena.results.games import FAILED, NOT_WANTED, GameTable
from arena.results.ratings import rating_settings
from judges.errors import InputError
from judges.types import GameOutcome
from retrieval_eval.stats import Bools
from retrieval_eval.stats.bootstrap import Clusters, units_of
from retrieval_eval.stats.components import FEWEST_JUDGES, for_one_judge, for_other_judges, variance
from retrieval_eval.stats.paired import GateVerdict, Paired, level_of_look, paired
from retrieval_eval.stats.scores import Scores, shares

_ONE_SIDED: Final = 0.25
"""If judges saw an agent first (or last) in less than this share of verdicts, position bias may explain its score."""
SAME: Final = 1e-9


def by_games(
    games: GameTable,
    settings: StoredSettings,
    answered: frozenset[tuple[str, str]],
    pair: tuple[str, str],
    margin: float,
    *,
    level: float,
    looks: Sequence[float],
    judges: JudgesAs,
    queries: frozenset[str] | None = None,
) -> Compared:
    """Compare two agents by their games; all games on one query, in any order and by any judge, count as one value."""
    new, old = pair
    rows = games.of_agent(new) & games.of_agent(old)
    if queries is not None:
        rows &= games.of_query(*(queries & set(games.queries)))
    common = _queries(games, rows)
    # A query that only one of the two answered has no game, and its outcome is unknown.
    one_answer = {query for query, agent in answered if agent == new} ^ {
        query for query, agent in answered if agent == old
    }
    wanted, alone = (
        Counter(games.clusters.get(query, query) for query in queries) for queries in (common, one_answer - common)
    )
    turns = wanted + alone
    only = len(alone.keys() - wanted.keys())
    rated = games.rated(rating_settings(settings), rows)
    if rated is None:
        no_games = paired([], margin, missing=len(turns), reach=0.5)
        why = f"no game between {new} and {old} has a verdict" if wanted else f"{new} and {old} never met"
        judgments = (_missing_verdicts(games, rows),) * 2
        doubt = f"{why}. Run the tournament to judge them."
        return Compared(PAIRWISE, None, None, no_games, level, (doubt,), judgments=judgments)
    outcomes = outcomes_of(rated, pair).score
    missing = len(turns) - outcomes.size
    judged = Counter(games.clusters.get(query, query) for query in _queries(games, rows & games.played))
    verdict_shares = _verdict_shares(games, rows)
    known = [verdict_shares[name] / turns[name] for name in sorted(judged)]  # in the order of ``outcomes``
    any_look = settings.adaptive and not looks
    how: dict[str, Any] = {"missing": missing, "known": known, "reach": 0.5, "level": level, "looks": looks}
    compared = partial(paired, outcomes - 0.5, margin, **how, symmetric=queries is not None)
    result = compared(any_look=any_look)
    at_level = level_of_look(looks, level) if looks else level
    of_judges, half = _of_judges(games, rating_settings(settings), rows, pair, result, level=at_level)
    doubts = [*_doubts(games, rows, new)]
    if judges == "random":
        if any_look:
            raise InputError("--judges random: an adaptive schedule's interval is for these judges; leave it out")
        result = compared(half=half) if half else result
        doubts += [] if half else [f"other judges need at least {FEWEST_JUDGES} judges; {len(of_judges.names)} judged."]
    share = float(outcomes.mean())
    unit = _unit(games.clusters)
    notes = (
        *_notes(games, rows, missing, only, unit),
        *_missing_turns(judged, turns),
        *_look_notes(result, looks),
    )
    judgments = (_missing_verdicts(games, rows),) * 2
    return Compared(
        *(PAIRWISE, share, 1 - share, result, at_level, tuple(doubts), notes, unit, judgments),
        differences=tuple(outcomes - 0.5),
        of_judges=of_judges,
        judges=judges,
    )


def _of_judges(
    games: GameTable, options: RatingSettings, rows: Bools, pair: tuple[str, str], result: Paired, *, level: float
) -> tuple[OfJudges, float]:
    """What the comparison owes to its judges, and half the width of the interval for other judges; 0 if unknown."""
    names = tuple(games.judges[judge] for judge in np.unique(games.judge[rows & games.played]).tolist())
    rated = games.rated(options, rows)
    if rated is None or rated.judge is None or len(names) > MOST_JUDGES:
        return OfJudges(names), 0.0
    if len(names) < 2:
        return OfJudges(names, parts={} if rated.repeat is None else parts_of(contributions(rated, pair[0]))), 0.0
    cells = contributions(rated, pair[0])
    half = float(variance(over_repeats(cells)).half_widths((1 - level) / 2)[0])

    def verdict(of: Games) -> GateVerdict:
        return paired(outcomes_of(of, pair).score - 0.5, result.margin, reach=0.5, level=level).verdict

    alone, without = [], dict[str, GateVerdict]()
    for name in names:
        ones, rest = (games.rated(options, rows & of) for of in (games.of_judge(name), ~games.of_judge(name)))
        alone.append(np.nan if ones is None else float(outcomes_of(ones, pair).score.mean()) - 0.5)
        if rest is not None and (other := verdict(rest)) != verdict(rated):
            without[name] = other
    others = for_other_judges(result.difference, half)
    of_judges = OfJudges(names, others, for_one_judge(np.array(alone)), parts_of(cells), without)
    return of_judges, 0.0 if math.isnan(half) else half


def _missing_verdicts(games: GameTable, rows: Bools) -> tuple[int, int]:
    """Numbers of missing and of planned verdicts on games; each order of a game is one verdict."""
    wanted = int((games.outcome[rows] != NOT_WANTED).sum())
    return wanted - int(games.judged[rows].sum()), wanted


def _verdict_shares(games: GameTable, rows: Bools) -> dict[str, float]:
    """By query, the share of the planned verdicts that exist; for a conversation, the sum of its queries' shares."""
    query = games.query[rows]
    wanted, judged = (
        np.bincount(query, flags.sum(axis=1), len(games.queries))
        for flags in (games.outcome[rows] != NOT_WANTED, games.judged[rows])
    )
    shares_by_unit: defaultdict[str, float] = defaultdict(float)
    for index in np.flatnonzero(wanted).tolist():
        name = games.queries[index]
        shares_by_unit[games.clusters.get(name, name)] += judged[index] / wanted[index]
    return shares_by_unit


def _queries(games: GameTable, rows: Bools) -> set[str]:
    return {games.queries[query] for query in np.unique(games.query[rows]).tolist()}


def _missing_turns(judged: Mapping[Any, int], turns: Mapping[Any, int]) -> Iterator[str]:
    missing = {name: turns[name] - count for name, count in judged.items() if 0 < count < turns[name]}
    if missing:
        conversations = counted(len(missing), *UNITS["conversation"])
        yield (
            f"{counted(sum(missing.values()), 'turn')} of {conversations} missing; what is there counts for the whole "
            "conversation."
        )


def _doubts(games: GameTable, rows: Bools, new: str) -> Iterator[str]:
    verdicts, judged = games.outcome[rows], games.judged[rows]
    both_orders = judged.all(axis=1)
    decided = verdicts[:, 0] != GameOutcome.TIE
    reversed_games = int((both_orders & decided & (verdicts[:, 0] == -verdicts[:, 1])).sum())
    if reversed_games and 2 * reversed_games >= both_orders.sum():
        yield (
            f"in {reversed_games:,} of the {counted(int(both_orders.sum()), 'game')} judged in both orders, each order "
            "preferred another agent: the place shown may decide, not the answer."
        )
    first = judged[:, 0] if games.agents.index(new) == games.a[rows][0] else judged[:, 1]
    share = first.sum() / judged.sum()
    if not _ONE_SIDED <= share <= 1 - _ONE_SIDED:
        where = "first" if share > 0.5 else "last"
        yield f"{new} was shown {where} in {PERCENT.write(max(share, 1 - share))} of the verdicts. Judge both orders."
    different = judged & ~games.identical[rows][:, None]
    if different.any() and not (verdicts[different] != GameOutcome.TIE).any():
        yield (
            "all verdicts on answers that differ are ties, so nothing shows that the judge can tell these two agents "
            "apart."
        )


def _notes(games: GameTable, rows: Bools, missing: int, alone: int, unit: Unit) -> Iterator[str]:
    verdicts, judged = games.outcome[rows], games.judged[rows]
    if missing:
        reason = f"; {counted(alone, *UNITS[unit])} only one of the two answered" if alone else ""
        yield f"{_missing(missing, unit)}{reason}."
    wanted, count, failed = int((verdicts != NOT_WANTED).sum()), int(judged.sum()), int((verdicts == FAILED).sum())
    if count < wanted:
        yield f"{count:,} of {counted(wanted, 'verdict')} between the two are there; {failed:,} failed."
    if not judged.all(axis=1).any():
        yield "judged in one order only, so a judge's favour for a place may show."


def _look_notes(result: Paired, looks: Sequence[float]) -> Iterator[str]:
    if len(looks) > 1:
        yield f"look {len(looks)} of a gate that looks after each batch; its interval is at the level left for it."
    if looks and looks[-1] < 1 and result.verdict != "undecided":
        yield "decided before all games were judged. A difference that ends a gate early is likely smaller in truth."


def _unit(clusters: Clusters) -> Unit:
    return "conversation" if clusters else "query"


def by_score(means: Scores, pair: tuple[str, str], margin: float, clusters: Clusters, level: float) -> Compared:
    """Compare two agents by a score of each answer or list of documents; the turns of a conversation are averaged."""
    name, unit = means.name, _unit(clusters)
    scored = [agent for agent in pair if agent in means.agents]
    if len(scored) < 2:
        unscored = listed([agent for agent in pair if agent not in scored])
        no_scores = paired([], margin, missing=len({*units_of(means.queries, clusters).tolist()}))
        return Compared(name, None, None, no_scores, level, (f"nothing is known of {unscored}.",), unit=unit)
    means = means.contributions() if means.conditional else means
    rows = [means.agents.index(agent) for agent in pair]
    new, old = means.values[rows]
    judgments = (means.missing(pair[0]), means.missing(pair[1]))
    both = ~(np.isnan(new) | np.isnan(old))
    new, old = new[both], old[both]
    query_unit = units_of(means.queries, clusters)
    units = int(query_unit.max(initial=-1)) + 1
    turns, judged = (np.bincount(index, minlength=units) for index in (query_unit, query_unit[both]))
    if clusters:
        has_score = judged > 0
        new, old = (
            np.bincount(query_unit[both], scores, units)[has_score] / judged[has_score] for scores in (new, old)
        )
    low, high = means.scale or (0.0, 1.0)
    if (
        means.scale is None
        and new.size
        and not (low <= min(new.min(), old.min()) and max(new.max(), old.max()) <= high)
    ):
        raise InputError(
            f"--on {name}: the score has values outside 0 to 1, so no margin applies; choose another score"
        )
    reach = high - low
    (least, most), (old_least, old_most) = np.moveaxis(means.bounds[:, rows], 1, 0)
    ends = np.array([least - old_most, most - old_least])
    ends = np.where(np.isnan(ends), [[-reach], [reach]], ends)
    bounds = np.array([np.bincount(query_unit, differences, units) / turns for differences in ends])
    missing, differences = units - new.size, new - old
    if means.lower:
        differences, bounds = -differences, -bounds[::-1]
    result = paired(differences, margin, missing=missing, bounds=bounds, reach=reach, level=level)
    notes = [*_missing_judgments(means, pair, clusters)]
    if not new.size:
        doubt = f"no {UNITS[unit][0]} has a score of both."
        return Compared(name, None, None, result, level, (doubt,), tuple(notes), unit, judgments, lower=means.lower)
    doubts = []
    if np.ptp(np.concatenate([new, old])) < SAME and new.size > 1:
        doubts = ["every score is the same, so nothing shows that it can tell these two agents apart."]
    missing_turns = _missing_turns(*(dict(enumerate(counts.tolist())) for counts in (judged, turns)))
    notes = [*([f"{_missing(missing, unit)}."] if missing else []), *missing_turns, *notes]
    means_of_both = float(new.mean()), float(old.mean())
    return Compared(
        name,
        *means_of_both,
        result,
        level,
        tuple(doubts),
        tuple(notes),
        unit,
        judgments,
        differences=tuple(differences.tolist()),
        lower=means.lower,
    )


def _missing_judgments(means: Scores, pair: tuple[str, str], clusters: Clusters) -> Iterator[str]:
    by_agent = {agent: means.missing(agent) for agent in pair}
    if means.judgments is None or not any(missing for missing, _ in by_agent.values()):
        return
    counts = listed([f"{missing:,} of {wanted:,} of {agent}" for agent, (missing, wanted) in by_agent.items()])
    agents = tuple(agent for agent in pair if agent in means.agents)
    both = means.judgments[:, [means.agents.index(agent) for agent in agents]]
    missing_shares = shares({means.name: replace(means, agents=agents, judgments=both)}, clusters)
    uneven = next(
        (
            f", more of {share.agent} by more than chance (p {P_VALUE.write(share.p)})"
            for share in missing_shares
            if share.uneven
        ),
        "",
    )
    yield f"judgments that are missing: {counts}{uneven}."


def _missing(number: int, unit: Unit) -> str:
    singular, plural = UNITS[unit]
    return f"{counted(number, f'{singular} is', f'{plural} are')} missing"
