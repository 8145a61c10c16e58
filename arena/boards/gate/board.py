"""The board of a gate: sentences, table and picture; also as JSON, as Markdown, and as JUnit XML for build servers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from arena.boards.compare import score_of
from arena.boards.left_out_judges import ADD_JUDGES, FIXED, judges_decide, parts_words
from arena.boards.quantities import WON, quantity
from arena.boards.repeats import noise_json, noise_words
from arena.config.stages import listed_stages
from arena.present.blocks import Block, Board, Remarks, Section, judge_first
from arena.present.numbers import COUNT, P_VALUE, Number, Percent, between_days, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table, fields, plain
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from arena.results.replies import AnswerTimes
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.components import ROUGH
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import MOST, GateVerdict, Paired
from retrieval_eval.stats.repeats import Noise

PAIRWISE: Final = "pairwise"
MARGIN: Final = 0.05
LEVEL: Final = 0.95
PASSED, FAILED_GATE, UNDECIDED = 0, 1, 3
"""Exit statuses of the gate command."""
_AGAIN: Final = "Run again to judge what is missing; 'ragleague failures' says what helps where that failed."
SHARE: Final = Percent(1)
"""Format of a share of points; it has a decimal because the margin may have one."""
FORM: Final = Number(3)
SIGNED: Final = Number(3, signed=True)
_DIFFERENCE: Final = "New minus old; for games, new's share of the points minus 0.5, which is even."
_EVEN: Final = "Win rate, 0.5 is even"
_LOWER: Final = "Old minus new where lower is better."


def score_sections() -> dict[str, str]:
    """Name of the configuration's section by score, for the scores of further stages."""
    return {score: stage.key for stage in listed_stages() for score in stage.scores}


def section_of(on: str, criteria: Collection[str]) -> str:
    """Name of the configuration's section whose judgments make a score; ``criteria`` are the names of all criteria."""
    if on in ("exam", "nuggets", PAIRWISE, "criteria") or on in score_sections().values():
        return on
    return "criteria" if on in criteria else score_sections().get(on, "retrieval")


JudgesAs: TypeAlias = Literal["fixed", "random"]
"""Whether a verdict is for these judges, or for other judges of this kind."""


class OfJudges(Struct, frozen=True):
    """What a comparison by games owes to its judges.

    Attributes:
        names: judges with a game between the two agents.
        others: the difference with its interval for other queries and other judges.
        one: prediction interval of the difference by another single judge.
        parts: shares of the variance, see ``OtherJudges``.
        without: the verdict without each judge that changes it.
    """

    names: tuple[str, ...]
    others: Estimate = Estimate(None)
    one: Estimate = Estimate(None)
    parts: Mapping[str, Estimate] = {}
    without: Mapping[str, GateVerdict] = {}

    def sentences(self) -> Iterator[str]:
        number = len(self.names)
        if number < 2:
            yield f"{FIXED[0].lower()}{FIXED[1:]}"
            yield from [f"{parts_words(self.parts)}."] if self.parts else []
            return
        changed = [f"without {judge}, {verdict}" for judge, verdict in self.without.items()]
        if changed:
            yield f"the verdict is another without 1 of {number} judges: {'; '.join(changed)}."
        else:
            yield f"the verdict is the same without any 1 of {number} judges."
        others, one = self.others, self.one
        if others.low is None or one.low is None:
            yield f"no interval for other judges: {number} judges do not show how judges differ."
            yield from [f"{parts_words(self.parts)}."] if self.parts else []
            return
        rough = f", rough with {number} judges" if number < ROUGH else ""
        shares = [SHARE.between(*(end + 0.5 for end in ends)) for ends in _ends(others, one)]
        yield (
            f"for other judges of this kind the interval is {shares[0]}{rough}; one more judge alone would say "
            f"{shares[1]} with a probability of 95%."
        )
        if self.parts:
            yield f"{parts_words(self.parts)}{f': {ADD_JUDGES}' if judges_decide(self.parts) else ''}."


def _ends(*estimates: Estimate) -> Iterator[tuple[float, float]]:
    for estimate in estimates:
        yield max(-0.5, estimate.low or 0.0), min(0.5, estimate.high or 0.0)


class Compared(Struct, frozen=True):
    """Comparison of the new agent with the old one by one score.

    Attributes:
        new, old: means over the queries on which both have a score; for games the share of points, a tie counting half.
        doubts: sentences on why the score allows no conclusion, whatever the interval.
        judgments: for the new and the old agent, numbers of missing and of planned judgments behind the score.
        differences: as in ``result``, by query or conversation; for games, the share of points minus one half.
        lower: whether lower is better; the difference is then old minus new.
        noise: how much the score changes when a system is asked again; ``None`` without repeated answers.
        itself: whether one agent is compared with itself, by its repeats.
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
    of_judges: OfJudges | None = None
    judges: JudgesAs = "fixed"
    differences: tuple[float, ...] = ()
    lower: bool = False
    noise: Noise | None = None
    itself: bool = False

    @property
    def verdict(self) -> GateVerdict:
        return "undecided" if self.doubts else self.result.verdict

    @property
    def title(self) -> str:
        return quantity(WON if self.on == PAIRWISE else score_of(self.on)).title

    def finding(self, new: str, old: str) -> str:
        difference, margin = self.result.difference, self.result.margin
        low, high = difference.low, difference.high
        if difference.value is None:
            return f"{self.title}: no {UNITS[self.unit][0]} has a figure of both."
        queries = counted(difference.n or 0, *UNITS[self.unit])
        if self.on != PAIRWISE or self.itself:
            interval = "" if low is None else f", {in_percent(self.level)} interval {SIGNED.between(low, high)}"
            return (
                f"{self.title}: {new} scores {FORM.write(self.new)} and {old} {FORM.write(self.old)} on {queries}; "
                f"{'lower is better, old less new' if self.lower else 'difference'} {SIGNED.write(difference.value)}"
                f"{interval}, margin {margin:g}."
            )
        share = [None if end is None else end + 0.5 for end in (low, high)]
        interval = "" if low is None else f" ({in_percent(self.level)} interval {SHARE.between(*share)})"
        return (
            f"{self.title}: {new} won {SHARE.write(difference.value + 0.5)} of the points against {old} on "
            f"{queries}{interval}, a tie counting half. Above {SHARE.write(0.5 - margin)} it is not worse, above 50% "
            "better."
        )

    def remarks(self) -> Iterator[str]:
        yield from (f"{self.title}: {sentence}" for sentence in self.sentences())

    def sentences(self) -> Iterator[str]:
        """What allows no conclusion, what would help, and what else matters to the verdict."""
        undecided = [self._undecided()] if self.verdict == "undecided" and not self.doubts else []
        of_judges = self.of_judges.sentences() if self.of_judges is not None else ()
        floor = [noise_words(self.noise)] if self.noise is not None else []
        yield from (*self.doubts, *undecided, *of_judges, *self.notes, *floor)

    def _undecided(self) -> str:
        result, (singular, plural) = self.result, UNITS[self.unit]
        if result.unsure:
            ends = "" if result.ends is None else f" (the difference may lie from {SIGNED.between(*result.ends)})"
            return f"undecided, since what is missing alone could turn the verdict round{ends}. {_AGAIN}"
        if result.difference.value is None:
            return f"undecided, since nothing is known of it. {_AGAIN}"
        if (result.difference.n or 0) < 2:
            return f"undecided, since one {singular} does not show how much {plural} differ."
        return self._what_helps()

    def _what_helps(self) -> str:
        """The sentence on a difference whose interval alone leaves it undecided."""
        result, (singular, plural) = self.result, UNITS[self.unit]
        by_judges = self.of_judges is not None and judges_decide(self.of_judges.parts)
        if self.judges == "random" and not by_judges:
            return "undecided for other judges of this kind: add judges, or queries."
        if by_judges:
            return f"undecided: {ADD_JUDGES}."
        if result.more is None:
            return f"undecided, and {COUNT.write(MOST)} {plural} like these would not decide it. Choose another margin."
        more = counted(_rounded(result.more), f"more {singular}", f"more {plural}")
        first = " ".join(filter(None, ("undecided.", judge_first(result.missing + self.left_out))))
        return f"{first} About {more} like these would decide it with a probability of 80%."


def _beside(score: Compared) -> dict[str, Any]:
    """What stands beside a difference: the score's name, and the figure that is subtracted, which games have not."""
    return {"heading": score.title, "subtracted": score.old} if score.on != PAIRWISE else {"heading": _EVEN}


class GroupCompared(Struct, frozen=True):
    """Comparison of the new agent with the old one on one group of queries, by one score.

    Attributes:
        column, value: the group has the queries with this value in this column.
        shrunk: the difference shrunk towards that of all queries; ``None`` without a difference.
        few: whether the group has too few queries to be tested.
        interaction: p-value of the hypothesis that the difference is the same in all groups of the column.
    """

    column: str
    value: str
    compared: Compared
    shrunk: float | None
    few: bool
    interaction: float | None

    @property
    def name(self) -> str:
        return f"{self.column}={self.value}"

    @property
    def verdict(self) -> str:
        return "too few to tell" if self.few else self.compared.verdict


def group_table(groups: Sequence[GroupCompared]) -> Table:
    """A row for each group and score; a group of few queries has no interval."""
    rows = []
    for group in groups:
        difference = group.compared.result.difference
        shown = Estimate(difference.value, n=difference.n) if group.few else difference
        rows.append(
            fields(group, "column", "value", "name", "verdict", "shrunk")
            | fields(group.compared, "on", "new", "old", "level")
            | _beside(group.compared)
            | {"difference": shown, "queries": difference.n}
        )
    columns = (
        Column("name", "Group", programs=False),
        Column("column", ""),
        Column("value", ""),
        Column("on", ""),
        Column("heading", "Score", programs=False),
        Column("queries", "Queries", COUNT, "With a figure of both agents."),
        Column("new", "New", FORM),
        Column("old", ""),
        Column("subtracted", "Old", FORM, programs=False),
        Column("difference", "Difference", SIGNED, _DIFFERENCE, "Interval"),
        Column("shrunk", ""),
        Column("verdict", "Verdict"),
    )
    return Table("groups", "", columns, rows)


def in_percent(level: float) -> str:
    """A confidence level in percent, as text with up to five digits: levels of early looks are close to 100 %."""
    return f"{100 * level:.5g}%"


def _rounded(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step


GROUPS: Final = (
    "An agent no worse overall may be worse on one kind of query. The gate fails if a group's verdict is worse, "
    "by the rule for all queries. The largest loss stands first. Each interval is at the level at which Holm's "
    f"procedure tests its group; groups of fewer than {FEW_QUERIES} queries are not tested."
)
_STANDINGS: Final = {PASSED: "Passed", FAILED_GATE: "Failed", UNDECIDED: "Undecided"}


class GateBoard(Board, frozen=True):
    """Result of a gate: two agents compared by one or more scores. The gate passes if every score passes.

    Since each must pass, several scores need no correction (Berger 1982, Technometrics 24, intersection-union tests).

    Attributes:
        tournament: name of the tournament; if the gate uses two, the tournament with the games.
        by: name of the column whose groups of queries are compared too; empty if there is none.
        groups: the comparison on each group, by each score; the group with the largest loss first.
        times: when the answers of the new and the old agent were made.
    """

    tournament: str
    new: str
    old: str
    margin: float
    scores: tuple[Compared, ...]
    notes: tuple[str, ...] = ()
    by: str = ""
    groups: tuple[GroupCompared, ...] = ()
    times: tuple[AnswerTimes, ...] = ()

    @property
    def collapsed(self) -> list[GroupCompared]:
        """The groups on which the new agent is shown to be worse."""
        return [group for group in self.groups if group.verdict == "worse"]

    @property
    def verdict(self) -> GateVerdict:
        """The worst verdict of all scores; ``undecided`` ranks below ``not worse``.

        It is ``worse`` if the verdict on some group of queries is ``worse``.
        """
        if self.collapsed:
            return "worse"
        order: Sequence[GateVerdict] = ("worse", "undecided", "not worse", "better")
        return min((score.verdict for score in self.scores), key=order.index)

    @property
    def passed(self) -> bool:
        """Whether every score shows that the new agent is better, or at least not worse by more than the margin."""
        return self.status == PASSED

    @property
    def status(self) -> int:
        return {"better": PASSED, "not worse": PASSED, "worse": FAILED_GATE, "undecided": UNDECIDED}[self.verdict]

    @property
    def headline(self) -> str:
        if self.verdict == "undecided":
            return f"Undecided: it is not shown whether {self.new} is worse than {self.old}."
        if self.collapsed:
            names = listed(list(dict.fromkeys(group.name for group in self.collapsed)))
            return f"{_STANDINGS[self.status]}: {self.new} is worse than {self.old} where {names}."
        return f"{_STANDINGS[self.status]}: {self.new} is {self.verdict} than {self.old}."

    def remarks(self) -> list[str]:
        games = [score.finding(self.new, self.old) for score in self.scores if score.on == PAIRWISE]
        return [*games, *self.reservations(), *self.notes]

    def reservations(self) -> list[str]:
        """What the table does not show; a sentence that several scores share is said once."""
        scores: dict[str, list[str]] = {}
        for score in self.scores:
            for sentence in score.sentences():
                scores.setdefault(sentence, []).append(score.title)
        shared = (f"{listed(titles)}: {sentence}" for sentence, titles in scores.items())
        return [*shared, *self._group_remarks(), *self.dated()]

    def dated(self) -> list[str]:
        """How many answers each agent has, when they were made and how many in this run; files' answers together."""
        agents: dict[tuple[int, str, str], list[str]] = {}
        for times in self.times:
            if times.answers:
                asked = times.agent if times.first is not None else ""
                agents.setdefault((times.answers, _dated(times), asked), []).append(times.agent)
        return [
            f"Answers of {listed(names)}: {COUNT.write(count)}{' each' * (len(names) > 1)}, {words}."
            for (count, words, _), names in agents.items()
        ]

    def _group_remarks(self) -> Iterator[str]:
        """Sentences on the groups of queries: which collapse, which are too small, whether the group matters."""
        for group in self.collapsed:
            yield f"{group.name}: {group.compared.finding(self.new, self.old)}"
        most: dict[str, int] = {}
        for group in self.groups:
            most[group.name] = max(most.get(group.name, 0), group.compared.result.difference.n or 0)
        if few := [name for name, count in most.items() if count < FEW_QUERIES]:
            units = UNITS[self.scores[0].unit]
            named = listed([f"{name} ({counted(most[name], *units)})" for name in few])
            yield f"Too few {units[1]} to tell: {named}."
        shown = {group.compared.title: group.interaction for group in self.groups if group.interaction is not None}
        if shown:
            values = ", ".join(f"{title} p {P_VALUE.write(p)}" for title, p in shown.items())
            yield f"Does the difference depend on {self.by}? A permutation test says: {values}."
        if self.groups and any(score.result.difference.method == "alpha spending" for score in self.scores):
            yield "The groups share the error probability of each look at the games."

    def sections(self) -> Sequence[Section]:
        blocks: list[Block] = [Remarks([self.headline]), self.table(), Remarks(self.remarks()), self.picture()]
        gate = Section("gate", "New against old", "Is the new agent worse than the old one?", blocks)
        if not self.groups:
            return [gate]
        return [gate, Section("groups", "By group of queries", GROUPS, [group_table(self.groups)])]

    def table(self) -> Table:
        rows = [
            fields(score, "on", "new", "old", "verdict")
            | _beside(score)
            | fields(score.result, "difference", "missing")
            | {"queries": score.result.difference.n}
            for score in self.scores
        ]
        level, units = f"{in_percent(self.scores[0].level)} interval", UNITS[self.scores[0].unit][1]
        lower = any(score.lower for score in self.scores)
        meaning = f"{_DIFFERENCE} {_LOWER}" if lower else _DIFFERENCE
        columns = (
            Column("on", ""),
            Column("heading", "Score", programs=False),
            Column("new", "New", FORM),
            Column("old", ""),
            Column("subtracted", "Old", FORM, programs=False),
            Column("difference", "Difference", SIGNED, meaning, level),
            Column(
                "queries", units.capitalize(), COUNT, f"{units.capitalize()} with a figure of both; each counts once."
            ),
            Column("missing", "Missing", COUNT, f"{units.capitalize()} without a figure of both."),
            Column("verdict", "Verdict"),
        )
        return Table("gate", "", columns, rows)

    def picture(self) -> Whiskers:
        lines = [
            Line(_beside(score)["heading"], [*_others(score), Mark(difference.value, difference.low, difference.high)])
            for score in self.scores
            if (difference := score.result.difference).value is not None
        ]
        caption = f"Right of 0, {self.new} is better. An interval wholly right of {-self.margin:g} passes."
        if any(_others(score) for score in self.scores):
            caption += " The longer grey line is the interval for other judges of this kind."
        if any(score.on == PAIRWISE for score in self.scores):
            caption += f" The win rate is {self.new}'s share of the points, counted from 0.5."
        words = f"Difference of {self.new} and {self.old} with intervals"
        return Whiskers("gate", "", words, caption, lines, "Difference", SIGNED, zero=True)

    def json(self) -> Any:
        own = fields(self, "tournament", "new", "old", "margin", "verdict", "passed")
        own |= {"scores": [_json(score) for score in self.scores], "notes": list(self.notes)}
        own |= {"answers": {name: _times_json(times) for name, times in zip(("new", "old"), self.times, strict=False)}}
        groups = [
            fields(group, "column", "value", "verdict", "shrunk", "interaction")
            | fields(group.compared, "on", "new", "old", "level")
            | fields(group.compared.result.difference, "low", "high")
            | {"difference": group.compared.result.difference.value, "queries": group.compared.result.difference.n}
            for group in self.groups
        ]
        return own | ({"by": self.by, "groups": groups} if self.by else {})

    def markdown(self) -> str:
        from arena.present import files

        headline = files.sentence(self.headline, "md").strip()
        groups = f"\n{files.markdown(group_table(self.groups))}" if self.groups else ""
        sentences = "".join(files.sentence(sentence, "md") for sentence in self.remarks())
        return f"### {headline}\n\n{files.markdown(self.table())}{sentences}{groups}"

    def junit(self) -> str:
        """JUnit XML with a test case per score; ``worse`` is a failure, ``undecided`` an error."""
        from arena.present.files import Case, CaseKind, junit

        kinds: Mapping[str, CaseKind] = {"worse": "failure", "undecided": "error"}
        cases = []
        for score in self.scores:
            details = "\n".join([score.finding(self.new, self.old), *score.remarks(), *self.dated()])
            name = f"{self.new} against {self.old} on {score.on}"
            cases.append(Case(name, score.verdict, details, kinds.get(score.verdict, "")))
        for group in self.groups:  # an undecided group does not fail the gate
            name = f"{self.new} against {self.old} on {group.compared.on}, {group.name}"
            details = group.compared.finding(self.new, self.old)
            cases.append(Case(name, group.verdict, details, "failure" if group.verdict == "worse" else ""))
        return junit("ragleague gate", cases)

    def __repr__(self) -> str:
        lines = [line for score in self.scores for line in (score.finding(self.new, self.old), *score.remarks())]
        return "\n".join([self.headline, *lines, *self._group_remarks(), *self.dated(), *self.notes])

    def _repr_markdown_(self) -> str:
        return self.markdown()


def _dated(times: AnswerTimes) -> str:
    if times.first is None or times.last is None:
        return "from a file"
    anew = "" if times.asked is None else f", {COUNT.write(times.asked)} asked anew"
    return f"made {between_days(times.first, times.last)}{anew}"


def _times_json(times: AnswerTimes) -> dict[str, Any]:
    made = [
        datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
        for at in (times.first, times.last)
        if at is not None
    ]
    return {"answers": times.answers, "made": made or None, "asked": times.asked}


def _others(score: Compared) -> list[Mark]:
    others = score.of_judges.others if score.of_judges is not None else Estimate(None)
    return [] if others.value is None or others.low is None else [Mark(others.value, others.low, others.high, "grey")]


def _json(score: Compared) -> dict[str, Any]:
    result, difference = score.result, score.result.difference
    return {
        **fields(score, "on", "verdict", "new", "old", "level"),
        **fields(difference, "low", "high", "method"),
        **fields(result, "missing", "wins", "ties", "losses"),
        **({"lower_is_better": True} if score.lower else {}),
        **({} if score.noise is None else {"noise": noise_json([score.noise])[score.noise.score]}),
        "difference": difference.value,
        "queries": difference.n,
        "judgments": {
            name: {"missing": missing, "of": wanted}
            for name, (missing, wanted) in zip(("new", "old"), score.judgments, strict=True)
        },
        "bounds": None if result.ends is None else list(result.ends),
        "more_queries": None if score.doubts else result.more,
        "doubts": list(score.doubts),
        "judges": score.judges,
        "of_judges": None if score.of_judges is None else plain(score.of_judges),
        "notes": list(score.notes),
    }
