"""Gate comparison of a new agent with an old one from the judgments in a store: by games or by any other score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.compare import OF_STAGE, score_of
from arena.boards.conclusion import NO_MODEL
from arena.boards.gate.board import GateBoard
from arena.boards.gate.differences import SAME, by_games, by_score
from arena.boards.gate.figures import LEVEL, MARGIN, PAIRWISE, Compared, GroupCompared, JudgesAs, section_of
from arena.config.settings import StoredSettings
from arena.data.kinds import KINDS
from arena.present.numbers import counted
from arena.results.cache import cached_games
from arena.results.cards import NO_CARD, lacking_cards
from arena.results.groups import require_column
from arena.results.ratings import number_of_groups
from arena.results.replies import answer_times
from arena.results.scores import means_of
from arena.store import Store
from judges.errors import InputError
from judges.sections import nearest
from judges.types import repeat_of
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.groups import interaction, shrunk
from retrieval_eval.stats.paired import holm_levels
from retrieval_eval.stats.repeats import halves, noise
from retrieval_eval.stats.scores import Scores

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
    by: str | Sequence[str] = (),
    since: float | None = None,
    every: Sequence[Scores] | None = None,
) -> GateBoard:
    """Compare two agents by the judgments in the store; runs no judge.

    ``on`` names scores: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, a criterion, or a measure such as
    ``nDCG@10``; by default all of the first four that the tournament has, and its first measure. The new agent may be
    worse by ``margin``, in share of games won or in units of the score. An agent with repeated answers can be compared
    with itself: its first repeats with the others, by games with their share of points against all agents. A gate that
    tests after each batch of games gives in ``looks`` the share of all queries judged at each test so far. With
    ``judges="random"`` the verdict by games is for other judges of this kind too. ``by`` names columns of the queries:
    the agents are then compared on each of their groups too, and the verdict *worse* on a group fails the gate. All
    groups share the error probability of a score (Holm). ``since`` is when this run began, in seconds since 1970:
    answers made later count as asked anew. ``every`` has all scores besides the games, if the caller has read them.

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
        every = means_of(store, tournament, data, every=bool(requested)) if every is None else every
        means = {names.get(method.name, method.name): method for method in every}

    def on_queries(name: str, level: float, queries: frozenset[str] | None = None) -> Compared:
        """Compare by one score, on all queries or on some of them."""
        answers = answered if queries is None else frozenset(key for key in answered if key[0] in queries)
        if new == old:
            method = replace(halves(points if name == PAIRWISE else means[name], new, repeats[new]), name=name)
            method = method if queries is None else method.among(queries)
            compared = by_score(method, (method.agents[0], method.agents[1]), margin, games.clusters, level)
            same = compared.differences and max(map(abs, compared.differences)) < SAME
            return replace(compared, doubts=(*compared.doubts, *([_SAME_REPEATS] if same else ())), itself=True)
        if name == PAIRWISE:
            how: dict[str, Any] = {"level": level, "looks": looks, "judges": judges, "queries": queries}
            return by_games(games, settings, answers, (new, old), margin, **how)
        method = replace(means[name], name=name)
        if name in _criteria(settings):  # all answers are graded, so a query without any grade is missing
            method = _with_queries(method, {query for query, agent in answered if agent in (new, old)})
        method = method if queries is None else method.among(queries)
        return by_score(method, (new, old), margin, games.clusters, level)

    means |= {name: means[score_of(name)] for name in requested if name not in means and score_of(name) in means}
    available = [*pairwise, *means]
    if unknown := next((name for name in requested if name not in available), ""):
        available = available or [method.name for method in means_of(store, tournament, data, every=True)]
        hint = nearest(unknown, available) if available else ": nothing is judged yet"
        raise InputError(f"--on {unknown}: no such score{hint}")
    levels = {
        name: _level(settings, name)
        for name in requested or [*pairwise, *(name for name in means if means[name].ranks)]
    }
    scores = [on_queries(name, level) for name, level in levels.items()]
    columns = (by,) if isinstance(by, str) and by else tuple(by)
    groups = {column: require_column(data().queries, column) for column in columns}
    of_groups = [
        group for name, level in levels.items() for group in _by_group(groups, level, partial(on_queries, name))
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
    pair = halves(points, new, repeats[new]).agents if new == old else (new, old)
    return GateBoard(
        tournament,
        pair[0],
        pair[1],
        margin,
        tuple(scores),
        notes,
        columns,
        tuple(of_groups),
        times,
        store.group,
        number_of_groups(store, tournament),
    )


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


def _level(settings: StoredSettings, on: str) -> float:
    """The confidence level of a comparison by this score."""
    if on == PAIRWISE and settings.adaptive and settings.pairwise is not None:
        return settings.pairwise.schedule.confidence or LEVEL
    return LEVEL


def _by_group(
    columns: Mapping[str, Mapping[str, Collection[str]]],
    level: float,
    on_queries: Callable[[float, frozenset[str]], Compared],
) -> list[GroupCompared]:
    """Compare on each group of all columns, the largest loss first; groups of few queries are not tested.

    Estimates shrunk towards the overall difference give the order, as the worst of several groups looks worse than it
    is. The raw differences with Holm's correction decide.
    """
    on_queries = cache(on_queries)  # the levels are tried in rounds
    queries_of = {
        (column, value): frozenset(ids) for column, groups in columns.items() for value, ids in groups.items()
    }
    counted_groups = {group: on_queries(level, queries) for group, queries in queries_of.items()}
    tested = [group for group, compared in counted_groups.items() if (compared.result.difference.n or 0) >= FEW_QUERIES]

    def is_apart(test: int, corrected: float) -> bool:
        difference = on_queries(corrected, queries_of[tested[test]]).result.difference
        low, high = difference.low, difference.high
        return low is not None and high is not None and not low <= 0 <= high

    levels = dict(zip(tested, holm_levels(len(tested), is_apart, level), strict=True))
    of_groups = []
    for column, groups in columns.items():
        parts = [np.array(counted_groups[column, value].differences) for value in groups]
        figures, number = np.concatenate(parts), np.repeat(np.arange(len(parts)), [part.size for part in parts])
        means = dict(zip(groups, shrunk(figures, number).tolist(), strict=False)) if figures.size else {}
        p = interaction(figures, number) if figures.size else None
        for value in groups:
            group, mean = (column, value), means.get(value, math.nan)
            compared = on_queries(levels[group], queries_of[group]) if group in levels else counted_groups[group]
            of_groups.append(
                GroupCompared(column, value, compared, None if math.isnan(mean) else mean, group not in levels, p)
            )
    # Where groups do not differ by more than chance, all shrunk differences are equal, and the raw ones give the order.
    return sorted(of_groups, key=_order)


def _order(group: GroupCompared) -> tuple[float, float]:
    shrunk_to, raw = (
        math.inf if difference is None else round(difference, 9)
        for difference in (group.shrunk, group.compared.result.difference.value)
    )
    return shrunk_to, raw


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
