"""A gate as it is shown: table, picture, Markdown, and XML for build servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from arena.boards.gate.score import FAILED_GATE, FORM, PAIRWISE, PASSED, SIGNED, UNDECIDED, Compared, in_percent
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT
from arena.present.picture import Line, Mark, Whiskers
from arena.present.table import Column, Table
from arena.ratings.games import Unit
from arena.ratings.results import UNITS
from retrieval_eval.stats.paired import GateVerdict

_STANDINGS: Final = {PASSED: "Passed", FAILED_GATE: "Failed", UNDECIDED: "Undecided"}


class GateBoard(Board, frozen=True):
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
    def verdict(self) -> GateVerdict:
        """Of all scores: the worst of theirs, where what is undecided is worse than what is not worse."""
        order: Sequence[GateVerdict] = ("worse", "undecided", "not worse", "better")
        return min((own.verdict for own in self.scores), key=order.index)

    @property
    def passed(self) -> bool:
        """Whether every score shows that the new agent is better, or at least not worse by more than the margin."""
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

    def sections(self) -> Sequence[Section]:
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
        level, units = f"{in_percent(self.scores[0].level)} interval", UNITS[self.scores[0].unit][1]
        columns = (
            Column("on", ""),
            Column("title", "Score", programs=False),
            Column("new", "New", FORM),
            Column("old", "Old", FORM),
            Column("difference", "Difference", SIGNED, "New less old; of games, new's share less one half.", level),
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
        return Whiskers("gate", "", words, caption, lines, "New less old", SIGNED, zero=True)

    def json(self) -> Any:
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
        from arena.present.files import Case, CaseKind, junit

        kinds: Mapping[str, CaseKind] = {"worse": "failure", "undecided": "error"}
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
