"""The board of a gate: sentences, table and picture; also as JSON, as Markdown, and as JUnit XML for build servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from arena.boards.gate.figures import FORM, PAIRWISE, SIGNED, Compared, GroupCompared, in_percent
from arena.boards.groups import one_of_groups
from arena.boards.repeats import noise_json
from arena.data.dataset import Group
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, P_VALUE, between_days, counted, listed
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table, fields, plain
from arena.ratings.results import UNITS
from arena.results.replies import AnswerTimes
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import GateVerdict

_DIFFERENCE: Final = "New minus old; for games, new's share of the points minus 0.5, which is even."
_EVEN: Final = "Win rate, 0.5 is even"
_LOWER: Final = "Old minus new where lower is better."
PASSED, FAILED_GATE, UNDECIDED = 0, 1, 3
"""Exit statuses of the gate command."""


_GROUPS: Final = (
    "An agent that is not worse overall may be worse on one kind of query: the gate fails if the verdict on a group is "
    "worse. The largest loss stands first. Each interval is at the level at which Holm's procedure tests its group; "
    f"groups of fewer than {FEW_QUERIES} queries are not tested."
)


def _beside(score: Compared) -> dict[str, Any]:
    """What stands beside a difference: the score's name, and the figure that is subtracted, which games have not."""
    return {"heading": _EVEN} if score.from_half else {"heading": score.title, "subtracted": score.old}


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
        *([Column("heading", "Score", programs=False)] if len({group.compared.on for group in groups}) > 1 else []),
        Column("queries", "Queries", COUNT, "With a figure of both agents."),
        Column("new", "New", FORM),
        Column("old", ""),
        Column("subtracted", "Old", FORM, programs=False),
        Column("difference", "Difference", SIGNED, _DIFFERENCE, "Interval"),
        Column("shrunk", ""),
        Column("verdict", "Verdict"),
    )
    return Table("groups", "", columns, rows, [_GROUPS])


_STANDINGS: Final = {PASSED: "Passed", FAILED_GATE: "Failed", UNDECIDED: "Undecided"}


class GateBoard(Board, frozen=True):
    """Result of a gate: two agents compared by one or more scores. The gate passes if every score passes.

    Since each must pass, several scores need no correction (Berger 1982, Technometrics 24, intersection-union tests).

    Attributes:
        tournament: name of the tournament; if the gate uses two, the tournament with the games.
        by: names of the columns whose groups of queries are compared too.
        groups: the comparison on each group, by each score; the group with the largest loss first.
        times: when the answers of the new and the old agent were made.
        group: the group of queries to which the gate is restricted, of ``of_groups``; ``None`` for all queries.
    """

    tournament: str
    new: str
    old: str
    margin: float
    scores: tuple[Compared, ...]
    notes: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    groups: tuple[GroupCompared, ...] = ()
    times: tuple[AnswerTimes, ...] = ()
    group: Group | None = None
    of_groups: int = 0

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
            words = f"it is not shown whether {self.new} is worse than {self.old}"
        elif self.collapsed:
            names = listed(list(dict.fromkeys(group.name for group in self.collapsed)))
            words = f"{self.new} is worse than {self.old} where {names}"
        else:
            words = f"{self.new} is {self.verdict} than {self.old}"
        only = f", on queries where {'='.join(self.group)}" if self.group else ""
        return f"{_STANDINGS[self.status]}: {words}{only}."

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
            yield group.compared.finding(self.new, self.old, group.name)
        most: dict[str, int] = {}
        for group in self.groups:
            most[group.name] = max(most.get(group.name, 0), group.compared.result.difference.n or 0)
        if few := [name for name, count in most.items() if count < FEW_QUERIES]:
            units = UNITS[self.scores[0].unit]
            named = listed([f"{name} ({counted(most[name], *units)})" for name in few])
            yield f"Too few {units[1]} to tell: {named}."
        for column in self.by:
            shown = {
                group.compared.title: f"{group.compared.title} p {P_VALUE.write(group.interaction)}"
                for group in self.groups
                if group.column == column and group.interaction is not None
            }
            if shown:
                yield f"Does the difference depend on {column}? A permutation test says: {', '.join(shown.values())}."
        if self.groups and any(score.result.difference.method == "alpha spending" for score in self.scores):
            yield "The groups share the error probability of each look at the games."
        yield from one_of_groups(self.group, self.of_groups)

    def sections(self) -> Sequence[Section]:
        blocks: list[Block] = [Remarks([self.headline]), self.table(), Remarks(self.remarks()), self.picture()]
        gate = Section("gate", "New against old", "Is the new agent worse than the old one?", blocks)
        if not self.groups:
            return [gate]
        return [gate, Section("groups", "By group of queries", "", [group_table(self.groups)])]

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
        if any(score.from_half for score in self.scores):
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
        if self.group is not None:
            own |= {"group": {"column": self.group[0], "value": self.group[1], "of": self.of_groups}}
        return own | ({"by": ", ".join(self.by), "groups": groups} if self.by else {})

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
            details = group.compared.finding(self.new, self.old, group.name)
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
