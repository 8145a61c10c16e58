"""Gate comparison of a new agent with an old one from the judgments in a store: by games or by any other score."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.compare import OF_STAGE, score_of
from arena.boards.conclusion import NO_MODEL
from arena.boards.gate.board import (
    LEVEL,
    MARGIN,
    PAIRWISE,
    SHARE,
    Compared,
    GateBoard,
    GroupCompared,
    JudgesAs,
    OfJudges,
    section_of,
)
from arena.config.settings import StoredSettings
from arena.data.dataset import Dataset, groupings
from arena.data.kinds import KINDS
from arena.present.numbers import P_VALUE, counted, listed
from arena.ratings.adaptive import outcomes_of
from arena.ratings.games import Games, Unit
from arena.ratings.other_judges import contributions, over_repeats, parts_of
from arena.ratings.results import MOST_JUDGES, UNITS, RatingSettings
from arena.results.cache import cached_games
from arena.results.cards import NO_CARD, lacking_cards
from arena.results.games import FAILED, NOT_WANTED, GameTable
from arena.results.ratings import rating_settings
from arena.results.replies import answer_times
from arena.results.scores import means_of
from arena.store import Store
from judges.errors import InputError
from judges.sections import nearest
from judges.types import GameOutcome, repeat_of
from retrieval_eval.stats import Bools
from retrieval_eval.stats.bootstrap import FEW_QUERIES, Clusters, units_of
from retrieval_eval.stats.components import FEWEST_JUDGES, for_one_judge, for_other_judges, variance
from retrieval_eval.stats.groups import interaction, shrunk
from retrieval_eval.stats.paired import GateVerdict, Paired, holm_levels, level_of_look, paired
from retrieval_eval.stats.repeats import halves, noise
from retrieval_eval.stats.scores import Scores, shares

_ONE_SIDED: Final = 0.25
"""If judges saw an agent first (or last) in less than this share of verdicts, position bias may explain its score."""
_SAME: Final = 1e-9
_WRITES_CARDS: Final = "'ragleague calibrate CONFIG --card FILE' writes one"
_FARTHEST: Final = 0.5
_SAME_REPEATS: Final = "all repeats score the same on every query. Equal texts are no evidence: is the system cached?"


def compare(
    store: Store,
    tournament: str,
    new: str,
    old: str,
    *,
    on: str | Sequence[str] = (),
    margin: float = MARGIN,
    looks: Sequence[float] = (),
    judges: JudgesAs = "fixed",
    by: str = "",
    since: float | None = None,
) -> GateBoard:
    """Compare two agents by the judgments in the store; runs no judge.

    ``on`` names scores: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a criterion, or a measure such as
    ``nDCG@10``; by default all of the first four that the tournament has, and its first measure. The new agent may be
    worse by ``margin``, in share of games won or in units of the score. An agent with repeated answers can be compared
    with itself: its first repeats with the others, by games with their share of points against all agents. A gate that
    tests after each batch of games gives in ``looks`` the share of all queries judged at each test so far. With
    ``judges="random"`` the verdict by games is for other judges of this kind too. ``by`` names a column of the queries:
    the agents are then compared on each of its groups too, and the verdict *worse* on a group fails the gate. The
    groups of a score share its error probability (Holm). ``since`` is when this run began, in seconds since 1970:
    answers made later count as asked anew.

    Raises:
        InputError: an agent, a score or a column does not exist, or the margin is out of range.
    """
    settings, games = store.settings(tournament), cached_games(store, tournament)
    answered, known = store.answered(tournament)
    agents = sorted({*known, *games.agents})
    repeats = Counter(repeat_of(name)[0] for name in {name for _, name in answered})
    check_agents(new, old, agents, repeats)
    points = games.points(settings.win_and_tie)
    data = cache(partial(store.dataset, tournament))
    requested = [on] if isinstance(on, str) else list(on)
    check_margin(margin, requested)
    pairwise = [PAIRWISE] if len(games) or settings.pairwise is not None else []
    means: dict[str, Scores] = {}
    if requested != [PAIRWISE]:
        names = {method: name for name, method in OF_STAGE.items()}
        every = bool(requested)
        means = {
            names.get(method.name, method.name): method for method in means_of(store, tournament, data, every=every)
        }

    def on_queries(name: str, level: float, queries: frozenset[str] | None = None) -> Compared:
        """Compare by one score, on all queries or on some of them."""
        answers = answered if queries is None else frozenset(key for key in answered if key[0] in queries)
        if new == old:
            method = replace(halves(points if name == PAIRWISE else means[name], new, repeats[new]), name=name)
            method = method if queries is None else method.among(queries)
            compared = _by_score(method, (method.agents[0], method.agents[1]), margin, games.clusters, level)
            same = compared.differences and max(map(abs, compared.differences)) < _SAME
            return replace(compared, doubts=(*compared.doubts, *([_SAME_REPEATS] if same else ())), itself=True)
        if name == PAIRWISE:
            how: dict[str, Any] = {"level": level, "looks": looks, "judges": judges, "queries": queries}
            return _by_games(games, settings, answers, (new, old), margin, **how)
        method = replace(means[name], name=name)
        if name in _criteria(settings):  # all answers are graded, so a query without any grade is missing
            method = _with_queries(method, {query for query, agent in answered if agent in (new, old)})
        method = method if queries is None else method.among(queries)
        return _by_score(method, (new, old), margin, games.clusters, level)

    means |= {name: means[score_of(name)] for name in requested if name not in means and score_of(name) in means}
    available = [*pairwise, *means]
    for name in dict.fromkeys(requested):
        if name not in available:
            hint = nearest(name, available) if available else ": nothing is judged yet"
            raise InputError(f"--on {name}: no such score{hint}")
    levels = {
        name: _level(settings, name)
        for name in requested or [*pairwise, *(name for name in means if means[name].ranks)]
    }
    scores = [on_queries(name, level) for name, level in levels.items()]
    groups = queries_by_group(data(), by) if by else {}
    of_groups = [
        group for name, level in levels.items() for group in _by_group(by, groups, level, partial(on_queries, name))
    ]
    left_out = settings.left_out if store.only is None else 0
    floors = {
        name: floor
        for name in levels
        if (of := points if name == PAIRWISE else means[name]) is not None and (floor := noise(of)) is not None
    }
    scores = [
        replace(
            score,
            doubts=(*score.doubts, *_without_card(score.on, settings)),
            left_out=left_out,
            noise=floors.get(score.on),
        )
        for score in scores
    ]
    if not scores:
        raise InputError("nothing is judged yet, so there is nothing to compare; run the tournament first")
    no_model = PAIRWISE in (score.on for score in scores) and settings.judges_of_words
    notes = (
        *([f"{NO_MODEL}."] if no_model else []),
        *(_unpaired(answered, new, old) if len(repeats) < repeats.total() else ()),
    )
    times = tuple(answer_times(store, tournament, name, since) for name in dict.fromkeys((new, old)))
    shown = halves(points, new, repeats[new]).agents if new == old else (new, old)
    return GateBoard(tournament, shown[0], shown[1], margin, tuple(scores), notes, by, tuple(of_groups), times=times)


def _unpaired(answered: Collection[tuple[str, str]], new: str, old: str) -> Iterator[str]:
    """Sentences on repeats of one agent that the other lacks."""
    if new == old:
        return
    keys = {
        agent: {(query, repeat_of(name)[1]) for query, name in answered if repeat_of(name)[0] == agent}
        for agent in (new, old)
    }
    for agent, other in ((new, old), (old, new)):
        if alone := sum(repeat > 1 for _, repeat in keys[agent] - keys[other]):
            yield (
                f"games pair repeats 1-1, 2-2 and so on: {counted(alone, 'answer')} of {agent} in no game, since "
                f"{other} has no such repeat."
            )


def queries_by_group(data: Dataset, column: str) -> dict[str, frozenset[str]]:
    """The queries of each group, by the value of a column.

    Raises:
        InputError: no column of this name divides the queries into groups.
    """
    groups = groupings(data.queries.values())
    if column not in groups:
        columns = {name for query in data.queries.values() for name in query.metadata}
        if column in columns:
            why = f"{column!r} does not group the queries: it has one value, or too many"
        else:
            why = f"no column {column!r} of the queries{nearest(column, groups) if groups else ' makes groups'}"
        raise InputError(f"--by: {why}")
    return {
        value: frozenset(name for name, query in data.queries.items() if query.metadata.get(column) == value)
        for value in groups[column]
    }


def _level(settings: StoredSettings, on: str) -> float:
    """The confidence level of a comparison by this score."""
    if on == PAIRWISE and settings.adaptive and settings.pairwise is not None:
        return settings.pairwise.schedule.confidence or LEVEL
    return LEVEL


def _by_group(
    column: str,
    groups: Mapping[str, frozenset[str]],
    level: float,
    on_queries: Callable[[float, frozenset[str]], Compared],
) -> list[GroupCompared]:
    """Compare on each group, the group with the largest loss first; groups of few queries are not tested.

    Estimates shrunk towards the overall difference give the order, as the worst of several groups looks worse than it
    is. The raw differences with Holm's correction decide.
    """
    on_queries = cache(on_queries)  # the levels are tried in rounds
    counted_groups = {value: on_queries(level, queries) for value, queries in groups.items()}
    tested = [value for value, group in counted_groups.items() if (group.result.difference.n or 0) >= FEW_QUERIES]

    def is_apart(test: int, corrected: float) -> bool:
        difference = on_queries(corrected, groups[tested[test]]).result.difference
        low, high = difference.low, difference.high
        return low is not None and high is not None and not low <= 0 <= high

    levels = dict(zip(tested, holm_levels(len(tested), is_apart, level), strict=True))
    values = [(number, figure) for number, group in enumerate(counted_groups.values()) for figure in group.differences]
    number, figures = np.array([number for number, _ in values], np.int64), np.array([figure for _, figure in values])
    means = dict(zip(counted_groups, shrunk(figures, number).tolist(), strict=False)) if values else {}
    p = interaction(figures, number) if values else None
    of_groups = [
        GroupCompared(
            column,
            value,
            on_queries(levels[value], groups[value]) if value in levels else group,
            None if math.isnan(mean := means.get(value, math.nan)) else mean,
            value not in levels,
            p,
        )
        for value, group in counted_groups.items()
    ]
    return sorted(of_groups, key=lambda group: math.inf if group.shrunk is None else group.shrunk)


def _without_card(on: str, settings: StoredSettings) -> Iterator[str]:
    """Yield a doubt for each judge of this score that lacks the judge card which the configuration requires."""
    section = section_of(on, _criteria(settings))
    kind = next((kind for kind in KINDS.values() if kind.section == section), None)
    for why in lacking_cards(settings, kind, datetime.now(UTC).date()):
        yield f"{why}. {'Decide by another score' if why == NO_CARD else _WRITES_CARDS}."


def _criteria(settings: StoredSettings) -> frozenset[str]:
    return frozenset(("criteria", *(settings.criteria.names if settings.criteria is not None else ())))


def _with_queries(means: Scores, queries: Collection[str]) -> Scores:
    added = sorted(set(queries).difference(means.queries))
    unknown = np.full((2, len(means.agents), len(added)), np.nan)
    values, ends = np.hstack([means.values, unknown[0]]), np.concatenate([means.bounds, unknown], axis=2)
    return replace(means, queries=(*means.queries, *added), values=values, ends=ends, repeats=None)


def check_margin(margin: float, on: Sequence[str]) -> None:
    if not 0 <= margin < math.inf:
        raise InputError(f"--margin {margin:g}: give a number from 0 to below {_FARTHEST:g}, such as 0.05")
    if PAIRWISE in on and margin >= _FARTHEST:
        raise InputError(
            f"--margin {margin:g}: everything would pass; a share of games won is at most {_FARTHEST:g} from one half, "
            "so give less, such as 0.05"
        )


def check_agents(new: str, old: str, agents: Sequence[str], repeats: Mapping[str, int] | None = None) -> None:
    """Check the names of two agents; an agent may be compared with itself if it has several ``repeats``."""
    for name in (new, old):
        if name not in agents:
            raise InputError(f"no agent {name!r} in the tournament{nearest(name, agents)}")
    if new == old and (repeats or {}).get(new, 1) < 2:
        raise InputError(
            f"{new!r} answered each query once, so it cannot be compared with itself; name two agents, or ask it "
            "several times (agents: repeats)"
        )


def _by_games(
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
        *_look_notes(result, looks, unit),
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
        own, rest = (games.rated(options, rows & of) for of in (games.of_judge(name), ~games.of_judge(name)))
        alone.append(np.nan if own is None else float(outcomes_of(own, pair).score.mean()) - 0.5)
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
        yield f"{new} was shown {where} in {SHARE.write(max(share, 1 - share))} of the verdicts. Judge both orders."
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


def _look_notes(result: Paired, looks: Sequence[float], unit: Unit) -> Iterator[str]:
    if len(looks) > 1:
        yield f"look {len(looks)} of a gate that looks after each batch; its interval is at the level left for it."
    if looks and looks[-1] < 1 and result.verdict != "undecided":
        yield (
            f"decided after {looks[-1]:.0%} of the {UNITS[unit][1]}. A difference that ends a gate early is likely "
            "smaller in truth."
        )


def _unit(clusters: Clusters) -> Unit:
    return "conversation" if clusters else "query"


def _by_score(means: Scores, pair: tuple[str, str], margin: float, clusters: Clusters, level: float) -> Compared:
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
    if np.ptp(np.concatenate([new, old])) < _SAME and new.size > 1:
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
    if means.gaps is None or not any(missing for missing, _ in by_agent.values()):
        return
    counts = listed([f"{missing:,} of {wanted:,} of {agent}" for agent, (missing, wanted) in by_agent.items()])
    missing_shares = shares({means.name: means.gaps.among(pair)}, clusters)
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
