"""A new agent against an old one: better, not worse, worse, or undecided, by the games or by any other score."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from arena.boards.calibration.methods import way_of
from arena.boards.compare import OF_STAGE
from arena.boards.conclusion import NO_MODEL
from arena.calibration.methods import Means
from arena.calibration.votes import Level
from arena.config.card import NO_CARD, lacking_cards
from arena.config.settings import StoredSettings
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, P_VALUE, Number, Percent, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table
from arena.ratings.evidence import outcomes_of
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from arena.results.cache import cached_games
from arena.results.coverage import judge_first
from arena.results.games import FAILED, NOT_WANTED, TIE, Bools, GameTable
from arena.results.ratings import rating_settings
from arena.results.scores import means_of
from arena.store import Store
from judges.errors import InputError
from judges.sections import nearest
from retrieval_eval.stats.bootstrap import Clusters, units_of
from retrieval_eval.stats.looks import level_of_look
from retrieval_eval.stats.missing import shares
from retrieval_eval.stats.paired import MOST, Paired, Verdict, paired

PAIRWISE: Final = "pairwise"
MARGIN: Final = 0.05
LEVEL: Final = 0.95
PASSED, FAILED_GATE, UNDECIDED = 0, 1, 3
"""What a gate's exit status is."""

_AGAIN: Final = "Run again to judge what is missing; 'ragleague failures' says what helps where that failed."
_SHARE: Final = Percent(1)
"""Of points: it is held against a bar, which may have a decimal."""
_FORM: Final = Number(3)
_SIGNED: Final = Number(3, signed=True)
_ONE_SIDED: Final = 0.25
"""With new shown first in less than this share of its verdicts, or last, place and agent are not told apart."""
_SAME: Final = 1e-9
_WRITES_CARDS: Final = "'ragleague calibrate CONFIG --card FILE' writes one"
_STANDINGS: Final = {PASSED: "Passed", FAILED_GATE: "Failed", UNDECIDED: "Undecided"}


_FARTHEST: Final = 0.5
"""How far a share of games won can lie from even."""


class Compared(Struct, frozen=True):
    """Two agents by one score.

    Attributes:
        on: the score, as it is asked for.
        new, old: means over the queries that both have; of games the share of points, a tie half.
        result: of the differences; of games new's share less one half.
        level: of the interval.
        doubts: why nothing may be concluded whatever the interval says, sentences.
        notes: what else to know, sentences.
        unit: what is one figure: a query, or a conversation with all of its turns.
        judgments: of new and of old, how many that the score rests on are missing, and of how many.
        left_out: further queries of the files, which the tournament was not asked.
    """

    on: str
    new: float | None
    old: float | None
    result: Paired
    level: float
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unit: Unit = "query"
    judgments: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    left_out: int = 0

    @property
    def verdict(self) -> Verdict:
        """What may be said."""
        return "undecided" if self.doubts else self.result.verdict

    @property
    def title(self) -> str:
        """The score for people."""
        return "Games won" if self.on == PAIRWISE else way_of(OF_STAGE.get(self.on, self.on))[0]

    def finding(self, new: str, old: str) -> str:
        """What was found, in a sentence."""
        own, margin = self.result.difference, self.result.margin
        if own.value is None:
            return f"{self.title}: no {UNITS[self.unit][0]} has a figure of both."
        queries = counted(own.n or 0, *UNITS[self.unit])
        if self.on != PAIRWISE:
            ends = (
                "" if own.low is None else f", {_in_percent(self.level)} interval {_SIGNED.between(own.low, own.high)}"
            )
            return (
                f"{self.title}: {new} scores {_FORM.write(self.new)} and {old} {_FORM.write(self.old)} on {queries}; "
                f"difference {_SIGNED.write(own.value)}{ends}, margin {margin:g}."
            )
        share = [None if end is None else end + 0.5 for end in (own.low, own.high)]
        ends = "" if own.low is None else f" ({_in_percent(self.level)} interval {_SHARE.between(*share)})"
        return (
            f"{self.title}: {new} won {_SHARE.write(own.value + 0.5)} of the points against {old} on "
            f"{queries}{ends}, a tie counting half. Above {_SHARE.write(0.5 - margin)} it is not worse, above 50% "
            "better."
        )

    def remarks(self) -> Iterator[str]:
        """Why it decides nothing, if it does not, what would, and what else to know."""
        lacking = [self._lacking()] if self.verdict == "undecided" and not self.doubts else []
        yield from (f"{self.title}: {said}" for said in (*self.doubts, *lacking, *self.notes))

    def _lacking(self) -> str:
        own, (one, many) = self.result, UNITS[self.unit]
        if own.unsure:
            ends = "" if own.ends is None else f" (the difference may lie from {_SIGNED.between(*own.ends)})"
            return f"undecided, since what is missing alone could turn the verdict round{ends}. {_AGAIN}"
        if own.difference.value is None:
            return f"undecided, since nothing is known of it. {_AGAIN}"
        if (own.difference.n or 0) < 2:
            return f"undecided, since one {one} does not show how much {many} differ."
        if own.more is None:
            return f"undecided, and {COUNT.write(MOST)} {many} like these would not decide it. Choose another margin."
        more = counted(_rounded(own.more), f"more {one}", f"more {many}")
        first = " ".join(filter(None, ("undecided.", judge_first(own.missing + self.left_out))))
        return f"{first} About {more} like these would decide it with a probability of 80%."


class Comparison(Board, frozen=True):
    """Two agents by one score or several. A gate passes where every score does.

    As each must pass, several need no correction (Berger 1982, Technometrics 24, intersection-union tests).

    Attributes:
        tournament: its name; where two were looked at, that of the games.
        margin: how much worse still passes, in units of each score.
        scores: one for each that was asked for.
        notes: of all of them.
    """

    tournament: str
    new: str
    old: str
    margin: float
    scores: tuple[Compared, ...]
    notes: tuple[str, ...] = ()
    unit: Unit = "query"

    @property
    def verdict(self) -> Verdict:
        """Of all scores: the worst of theirs, where what is undecided is worse than what is not worse."""
        order: Sequence[Verdict] = ("worse", "undecided", "not worse", "better")
        return min((own.verdict for own in self.scores), key=order.index)

    @property
    def passed(self) -> bool:
        """Whether new is shown to be better, or not worse."""
        return self.status == PASSED

    @property
    def status(self) -> int:
        """Exit status of a gate."""
        return {"better": PASSED, "not worse": PASSED, "worse": FAILED_GATE, "undecided": UNDECIDED}[self.verdict]

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        if self.verdict == "undecided":
            return f"Undecided: it is not shown whether {self.new} is worse than {self.old}."
        return f"{_STANDINGS[self.status]}: {self.new} is {self.verdict} than {self.old}."

    def remarks(self) -> list[str]:
        """What the table does not say."""
        games = [own.finding(self.new, self.old) for own in self.scores if own.on == PAIRWISE]
        return [*games, *(said for own in self.scores for said in own.remarks()), *self.notes]

    def sections(self) -> Sequence[Section]:  # noqa: D102
        blocks: list[Block] = [Remarks([self.headline]), self.table(), Remarks(self.remarks()), self.picture()]
        return [Section("gate", "New against old", "Is the new agent worse than the old one?", blocks)]

    def table(self) -> Table:
        """A row per score."""
        rows = [
            {
                "on": own.on,
                "title": own.title,
                "new": own.new,
                "old": own.old,
                "difference": own.result.difference,
                "queries": own.result.difference.n,
                "missing": own.result.missing,
                "verdict": own.verdict,
            }
            for own in self.scores
        ]
        level, units = f"{_in_percent(self.scores[0].level)} interval", UNITS[self.scores[0].unit][1]
        columns = (
            Column("on", ""),
            Column("title", "Score", programs=False),
            Column("new", "New", _FORM),
            Column("old", "Old", _FORM),
            Column("difference", "Difference", _SIGNED, "New less old; of games, new's share less one half.", level),
            Column("queries", units.capitalize(), COUNT, "Those that both have a figure on; each counts once."),
            Column("missing", "Missing", COUNT, f"Further {units} of which nothing is known."),
            Column("verdict", "Verdict"),
        )
        return Table("gate", "", columns, rows)

    def picture(self) -> Whiskers:
        """The differences."""
        lines = [
            Line(own.title, [Mark(found.value, found.low, found.high)])
            for own in self.scores
            if (found := own.result.difference).value is not None
        ]
        caption = f"Right of 0, {self.new} is better. An interval wholly right of {-self.margin:g} passes."
        words = f"Difference of {self.new} and {self.old} with intervals"
        return Whiskers("gate", "", words, caption, lines, "New less old", _SIGNED, zero=True)

    def json(self) -> Any:  # noqa: D102
        return {
            "tournament": self.tournament,
            "new": self.new,
            "old": self.old,
            "margin": self.margin,
            "verdict": self.verdict,
            "passed": self.passed,
            "scores": [_json(own) for own in self.scores],
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """A short comment for a pull request."""
        from arena.present import files

        headline = files.sentence(self.headline, "md").strip()
        return f"### {headline}\n\n{files.markdown(self.table())}" + "".join(
            files.sentence(said, "md") for said in self.remarks()
        )

    def junit(self) -> str:
        """A test case for each score, as XML that build servers read; undecided is an error, worse a failure."""
        from arena.present.files import Case, Kind, junit

        kinds: Mapping[str, Kind] = {"worse": "failure", "undecided": "error"}
        cases = []
        for own in self.scores:
            said = "\n".join([own.finding(self.new, self.old), *own.remarks()])
            name = f"{self.new} against {self.old} on {own.on}"
            cases.append(Case(name, own.verdict, said, kinds.get(own.verdict, "")))
        return junit("ragleague gate", cases)

    def __repr__(self) -> str:
        found = [line for own in self.scores for line in (own.finding(self.new, self.old), *own.remarks())]
        return "\n".join([self.headline, *found, *self.notes])

    def _repr_markdown_(self) -> str:
        return self.markdown()


def _json(own: Compared) -> dict[str, Any]:
    found = own.result
    return {
        "on": own.on,
        "verdict": own.verdict,
        "new": own.new,
        "old": own.old,
        "difference": found.difference.value,
        "low": found.difference.low,
        "high": found.difference.high,
        "level": own.level,
        "method": found.difference.method,
        "queries": found.difference.n,
        "missing": found.missing,
        "judgments": {
            name: {"missing": missing, "of": of}
            for name, (missing, of) in zip(("new", "old"), own.judgments, strict=True)
        },
        "bounds": None if found.ends is None else list(found.ends),
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "more_queries": None if own.doubts else found.more,
        "doubts": list(own.doubts),
        "notes": list(own.notes),
    }


def compare(
    store: Store,
    tournament: str,
    new: str,
    old: str,
    *,
    on: str | Sequence[str] = (),
    margin: float = MARGIN,
    looks: Sequence[float] = (),
) -> Comparison:
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
    return Comparison(tournament, new, old, margin, tuple(scores), (f"{NO_MODEL}.",) if words else ())


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
    wanted = int((games.said[rows] != NOT_WANTED).sum())
    return wanted - int(games.judged[rows].sum()), wanted


def _verdicts_there(games: GameTable, rows: Bools) -> dict[str, float]:
    """By query or conversation, the sum over its queries of the share of verdicts that is there."""
    query = games.query[rows]
    wanted, judged = (
        np.bincount(query, own.sum(axis=1), len(games.queries))
        for own in (games.said[rows] != NOT_WANTED, games.judged[rows])
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
    said, judged = games.said[rows], games.judged[rows]
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
        yield f"{new} was shown {where} in {_SHARE.write(max(share, 1 - share))} of the verdicts. Judge both orders."
    different = judged & ~games.identical[rows][:, None]
    if different.any() and not (said[different] != TIE).any():
        yield (
            "all verdicts on answers that differ are ties, so nothing shows that the judge can tell these two agents "
            "apart."
        )


def _notes(games: GameTable, rows: Bools, missing: int, alone: int, unit: Unit) -> Iterator[str]:
    said, judged = games.said[rows], games.judged[rows]
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


def _in_percent(level: float) -> str:
    """A level; those of early looks are close to 100 %."""
    return f"{100 * level:.5g}%"


def _unit(clusters: Clusters) -> Unit:
    return "conversation" if clusters else "query"


def _missing(number: int, unit: Unit) -> str:
    one, many = UNITS[unit]
    return f"{counted(number, f'{one} is', f'{many} are')} missing"


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


def _rounded(count: int) -> int:
    """To two digits, upwards: it is no more than an estimate."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step
