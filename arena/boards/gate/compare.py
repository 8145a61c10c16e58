"""A new agent against an old one, from a store: by the games, or by any other score."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from arena.boards.compare import OF_STAGE
from arena.boards.conclusion import NO_MODEL
from arena.boards.gate.board import GateBoard
from arena.boards.gate.score import LEVEL, MARGIN, PAIRWISE, SHARE, Compared
from arena.calibration.methods import Means
from arena.calibration.votes import Level
from arena.config.settings import StoredSettings
from arena.present.numbers import P_VALUE, counted, listed
from arena.ratings.evidence import outcomes_of
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from arena.results.cache import cached_games
from arena.results.cards import NO_CARD, lacking_cards
from arena.results.games import FAILED, NOT_WANTED, TIE, GameTable
from arena.results.ratings import rating_settings
from arena.results.scores import means_of
from arena.store import Store
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.stats.arrays import Bools
from retrieval_eval.stats.bootstrap import Clusters, units_of
from retrieval_eval.stats.looks import level_of_look
from retrieval_eval.stats.missing import shares
from retrieval_eval.stats.paired import Paired, paired

_ONE_SIDED: Final = 0.25
"""With new shown first in less than this share of its verdicts, or last, place and agent are not told apart."""
_SAME: Final = 1e-9
_WRITES_CARDS: Final = "'ragleague calibrate CONFIG --card FILE' writes one"
_FARTHEST: Final = 0.5
"""How far a share of games won can lie from even."""


def compare(
    store: Store,
    tournament: str,
    new: str,
    old: str,
    *,
    on: str | Sequence[str] = (),
    margin: float = MARGIN,
    looks: Sequence[float] = (),
) -> GateBoard:
    """Compare two agents of a tournament on what is judged; nobody is asked.

    Args:
        store: where the judgments are.
        tournament: its name.
        new: the agent that may replace the other.
        old: the other.
        on: ``pairwise``, ``exam``, ``nuggets``, ``criteria``, the name of one criterion, a measure of the tournament
            such as ``nDCG@10``, or several of these; when empty all that the tournament has of the first four and its
            first measure.
        margin: how much worse still passes: in share of games won, or in units of the score.
        looks: of a gate that looks at games after each batch, the share of all queries at each look, this one last.

    Raises:
        InputError: no such tournament, agent or score; or a margin that is out of range.
    """
    settings, games = store.settings(tournament), cached_games(store, tournament)
    answered, known = store.answered(tournament)
    agents = sorted({*known, *games.agents})
    check_agents(new, old, agents)
    data = cache(partial(store.dataset, tournament))
    asked = [on] if isinstance(on, str) else list(on)
    check_margin(margin, asked)
    played = [PAIRWISE] if len(games) or settings.pairwise is not None else []
    means: dict[str, Means] = {}
    if asked != [PAIRWISE]:
        names = {method: name for name, method in OF_STAGE.items()}
        every = bool(asked)
        means = {names.get(own.name, own.name): own for own in means_of(store, tournament, data, every=every)}
    scores = []
    for name in dict.fromkeys(asked or [*played, *means]):
        if name == PAIRWISE and played:
            scores.append(_by_games(games, settings, answered, (new, old), margin, looks=looks))
        elif name in means:
            own = replace(means[name], name=name)
            if name in _criteria(settings):  # all answers are graded, so a query without any grade is missing
                own = _with_queries(own, {query for query, agent in answered if agent in (new, old)})
            scores.append(_by_score(own, (new, old), margin, games.clusters))
        else:
            there = [*played, *means]
            raise InputError(
                f"--on {name}: no such score{nearest(name, there) if there else ': nothing is judged yet'}"
            )
    left_out = settings.left_out if store.only is None else 0
    scores = [replace(own, doubts=(*own.doubts, *_without_card(own.on, settings)), left_out=left_out) for own in scores]
    if not scores:
        raise InputError("nothing is judged yet, so there is nothing to compare; run the tournament first")
    words = PAIRWISE in (own.on for own in scores) and settings.judges_of_words
    return GateBoard(tournament, new, old, margin, tuple(scores), (f"{NO_MODEL}.",) if words else ())


def _without_card(on: str, settings: StoredSettings) -> Iterator[str]:
    """Why the judges of a score may not decide, where the configuration requires a card of them."""
    levels: dict[str, Level | None] = {PAIRWISE: "verdicts", "nuggets": "nuggets", "exam": None}
    levels |= dict.fromkeys(("support_precision", "support_recall"), "support")
    level = levels.get(on, "criteria" if on in _criteria(settings) else "labels")
    for why in lacking_cards(settings, level, datetime.now(UTC).date()):
        yield f"{why}. {'Decide by another score' if why == NO_CARD else _WRITES_CARDS}."


def _criteria(settings: StoredSettings) -> frozenset[str]:
    return frozenset(("criteria", *(settings.criteria.names if settings.criteria is not None else ())))


def _with_queries(means: Means, queries: Collection[str]) -> Means:
    """The same with further queries, on which nobody has a score."""
    further = sorted(set(queries).difference(means.queries))
    unknown = np.full((2, len(means.agents), len(further)), np.nan)
    values, ends = np.hstack([means.values, unknown[0]]), np.concatenate([means.bounds, unknown], axis=2)
    return replace(means, queries=(*means.queries, *further), values=values, ends=ends)


def check_margin(margin: float, on: Sequence[str]) -> None:
    """See that a margin lets not everything pass.

    Raises:
        InputError: it is no number, negative, or as large as the farthest that games can lie from even.
    """
    if not 0 <= margin < math.inf:
        raise InputError(f"--margin {margin:g}: give a number from 0 to below {_FARTHEST:g}, such as 0.05")
    if PAIRWISE in on and margin >= _FARTHEST:
        raise InputError(
            f"--margin {margin:g}: everything would pass; a share of games won lies at most {_FARTHEST:g} from even, "
            "so give less, such as 0.05"
        )


def check_agents(new: str, old: str, agents: Sequence[str]) -> None:
    """See that two agents can be compared.

    Raises:
        InputError: one is none of the tournament's, or both are the same.
    """
    for name in (new, old):
        if name not in agents:
            raise InputError(f"no agent {name!r} in the tournament{nearest(name, agents)}")
    if new == old:
        raise InputError(f"{new!r} cannot be compared with itself; name two agents")


def _by_games(
    games: GameTable,
    settings: StoredSettings,
    answered: frozenset[tuple[str, str]],
    pair: tuple[str, str],
    margin: float,
    *,
    looks: Sequence[float],
) -> Compared:
    """Two agents by the games between them; of a query all games, orders and judges are one figure."""
    new, old = pair
    rows = games.of_agent(new) & games.of_agent(old)
    met = _queries(games, rows)
    # On a query that only one of the two answered there is no game, and nobody knows what it would have been.
    either = {query for query, agent in answered if agent == new} ^ {query for query, agent in answered if agent == old}
    wanted, alone = (Counter(games.clusters.get(query, query) for query in own) for own in (met, either - met))
    turns = wanted + alone
    only = len(alone.keys() - wanted.keys())
    rated = games.rated(rating_settings(settings), rows)
    if rated is None:
        nothing = paired([], margin, missing=len(turns), reach=0.5)
        why = f"no game between {new} and {old} has a verdict" if wanted else f"{new} and {old} never met"
        judgments = (_lacking_of(games, rows),) * 2
        doubt = f"{why}. Run the tournament to judge them."
        return Compared(PAIRWISE, None, None, nothing, LEVEL, (doubt,), judgments=judgments)
    outcomes = outcomes_of(rated, pair).score
    level = LEVEL
    if settings.adaptive and settings.pairwise is not None:
        level = settings.pairwise.schedule.confidence or LEVEL
    missing = len(turns) - outcomes.size
    judged = Counter(games.clusters.get(query, query) for query in _queries(games, rows & games.played))
    there = _verdicts_there(games, rows)
    known = [there[name] / turns[name] for name in sorted(judged)]  # in the order of ``outcomes``
    found = paired(
        outcomes - 0.5,
        margin,
        missing=missing,
        known=known,
        reach=0.5,
        level=level,
        looks=looks,
        any_look=settings.adaptive and not looks,
    )
    share = float(outcomes.mean())
    unit = _unit(games.clusters)
    notes = (*_notes(games, rows, missing, only, unit), *_missing_turns(judged, turns), *_of_looks(found, looks, unit))
    level = level_of_look(looks, level) if looks else level
    judgments = (_lacking_of(games, rows),) * 2
    return Compared(PAIRWISE, share, 1 - share, found, level, tuple(_doubts(games, rows, new)), notes, unit, judgments)


def _lacking_of(games: GameTable, rows: Bools) -> tuple[int, int]:
    """How many verdicts are missing, and of how many; each order of a game is one."""
    wanted = int((games.outcome[rows] != NOT_WANTED).sum())
    return wanted - int(games.judged[rows].sum()), wanted


def _verdicts_there(games: GameTable, rows: Bools) -> dict[str, float]:
    """By query or conversation, the sum over its queries of the share of verdicts that is there."""
    query = games.query[rows]
    wanted, judged = (
        np.bincount(query, own.sum(axis=1), len(games.queries))
        for own in (games.outcome[rows] != NOT_WANTED, games.judged[rows])
    )
    found: defaultdict[str, float] = defaultdict(float)
    for place in np.flatnonzero(wanted).tolist():
        name = games.queries[place]
        found[games.clusters.get(name, name)] += judged[place] / wanted[place]
    return found


def _queries(games: GameTable, rows: Bools) -> set[str]:
    return {games.queries[query] for query in np.unique(games.query[rows]).tolist()}


def _missing_turns(judged: Mapping[Any, int], turns: Mapping[Any, int]) -> Iterator[str]:
    """What is missing of conversations of which some turns are there."""
    gone = {name: turns[name] - number for name, number in judged.items() if 0 < number < turns[name]}
    if gone:
        of = counted(len(gone), *UNITS["conversation"])
        yield f"{counted(sum(gone.values()), 'turn')} of {of} missing; what is there counts for the whole conversation."


def _doubts(games: GameTable, rows: Bools, new: str) -> Iterator[str]:
    """Why games say nothing of two agents: the place shown may decide, or the judge has not been seen to decide."""
    said, judged = games.outcome[rows], games.judged[rows]
    both = judged.all(axis=1)
    against = int((both & (said[:, 0] == -said[:, 1]) & (said[:, 0] != TIE)).sum())
    if against and 2 * against >= both.sum():
        yield (
            f"in {against:,} of the {counted(int(both.sum()), 'game')} judged in both orders, each order preferred "
            "another agent: the place shown may decide, not the answer."
        )
    first = judged[:, 0] if games.agents.index(new) == games.a[rows][0] else judged[:, 1]
    share = first.sum() / judged.sum()
    if not _ONE_SIDED <= share <= 1 - _ONE_SIDED:
        where = "first" if share > 0.5 else "last"
        yield f"{new} was shown {where} in {SHARE.write(max(share, 1 - share))} of the verdicts. Judge both orders."
    different = judged & ~games.identical[rows][:, None]
    if different.any() and not (said[different] != TIE).any():
        yield (
            "all verdicts on answers that differ are ties, so nothing shows that the judge can tell these two agents "
            "apart."
        )


def _notes(games: GameTable, rows: Bools, missing: int, alone: int, unit: Unit) -> Iterator[str]:
    said, judged = games.outcome[rows], games.judged[rows]
    if missing:
        reason = f"; {counted(alone, *UNITS[unit])} only one of the two answered" if alone else ""
        yield f"{_missing(missing, unit)}{reason}."
    wanted, there, failed = int((said != NOT_WANTED).sum()), int(judged.sum()), int((said == FAILED).sum())
    if there < wanted:
        yield f"{there:,} of {counted(wanted, 'verdict')} between the two are there; {failed:,} failed."
    if not judged.all(axis=1).any():
        yield "judged in one order only, so a judge's favour for a place may show."


def _of_looks(found: Paired, looks: Sequence[float], unit: Unit) -> Iterator[str]:
    """What several looks do to a verdict and to the estimate beside it."""
    if len(looks) > 1:
        yield f"look {len(looks)} of a gate that looks after each batch; its interval is at the level left for it."
    if looks and looks[-1] < 1 and found.verdict != "undecided":
        yield (
            f"decided after {looks[-1]:.0%} of the {UNITS[unit][1]}. A difference that ends a gate early is likely "
            "smaller in truth."
        )


def _unit(clusters: Clusters) -> Unit:
    return "conversation" if clusters else "query"


def _by_score(means: Means, pair: tuple[str, str], margin: float, clusters: Clusters) -> Compared:
    """Two agents by a score of each answer or list of documents; the turns of a conversation are one figure."""
    name, unit = means.name, _unit(clusters)
    known = [agent for agent in pair if agent in means.agents]
    if len(known) < 2:
        lacking = listed([agent for agent in pair if agent not in known])
        nothing = paired([], margin, missing=len({*units_of(means.queries, clusters).tolist()}))
        return Compared(name, None, None, nothing, LEVEL, (f"nothing is known of {lacking}.",), unit=unit)
    rows = [means.agents.index(agent) for agent in pair]
    new, old = means.values[rows]
    judgments = (means.missing(pair[0]), means.missing(pair[1]))
    both = ~(np.isnan(new) | np.isnan(old))
    new, old = new[both], old[both]
    of_unit = units_of(means.queries, clusters)
    units = int(of_unit.max(initial=-1)) + 1
    turns, judged = (np.bincount(own, minlength=units) for own in (of_unit, of_unit[both]))
    there = judged > 0
    if clusters:
        new, old = (np.bincount(of_unit[both], own, units)[there] / judged[there] for own in (new, old))
    low, high = means.scale or (0.0, 1.0)
    if (
        means.scale is None
        and new.size
        and not (low <= min(new.min(), old.min()) and max(new.max(), old.max()) <= high)
    ):
        raise InputError(f"--on {name}: only scores from 0 to 1 can be compared with a margin")
    reach = high - low
    (least, most), (old_least, old_most) = np.moveaxis(means.bounds[:, rows], 1, 0)
    ends = np.array([least - old_most, most - old_least])
    ends = np.where(np.isnan(ends), [[-reach], [reach]], ends)
    bounds = np.array([np.bincount(of_unit, own, units) / turns for own in ends])
    missing = units - new.size
    found = paired(new - old, margin, missing=missing, bounds=bounds, reach=reach, level=LEVEL)
    notes = [*_missing_judgments(means, pair, clusters)]
    if not new.size:
        doubt = f"no {UNITS[unit][0]} has a score of both."
        return Compared(name, None, None, found, LEVEL, (doubt,), tuple(notes), unit, judgments)
    doubts = []
    if np.ptp(np.concatenate([new, old])) < _SAME and new.size > 1:
        doubts = ["every score is the same, so nothing shows that it can tell these two agents apart."]
    missing_turns = _missing_turns(*(dict(enumerate(own.tolist())) for own in (judged, turns)))
    notes = [*([f"{_missing(missing, unit)}."] if missing else []), *missing_turns, *notes]
    means_of_both = float(new.mean()), float(old.mean())
    return Compared(name, *means_of_both, found, LEVEL, tuple(doubts), tuple(notes), unit, judgments)


def _missing_judgments(means: Means, pair: tuple[str, str], clusters: Clusters) -> Iterator[str]:
    """What of a score's judgments is missing, and whether more of one agent's by more than chance."""
    lacking = {agent: means.missing(agent) for agent in pair}
    if means.gaps is None or not any(missing for missing, _ in lacking.values()):
        return
    said = listed([f"{missing:,} of {of:,} of {agent}" for agent, (missing, of) in lacking.items()])
    own = shares({means.name: means.gaps.among(pair)}, clusters)
    uneven = next(
        (f", more of {one.agent} by more than chance (p {P_VALUE.write(one.p)})" for one in own if one.uneven), ""
    )
    yield f"judgments that are missing: {said}{uneven}."


def _missing(number: int, unit: Unit) -> str:
    one, many = UNITS[unit]
    return f"{counted(number, f'{one} is', f'{many} are')} missing"
