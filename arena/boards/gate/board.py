"""The board of a gate: sentences, table and picture; also as JSON, as Markdown, and as JUnit XML for build servers."""

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
    """Result of a gate: two agents compared by one or more scores. The gate passes if every score passes.

    Since each must pass, several scores need no correction (Berger 1982, Technometrics 24, intersection-union tests).

    Attributes:
        tournament: name of the tournament; if the gate uses two, the tournament with the games.
        new, old: names of the agents.
        margin: how much worse the new agent may be, in units of each score.
        scores: one comparison for each requested score.
        notes: remarks on all scores together.
        unit: what counts as one value: a query, or a conversation with all of its turns.
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
        """The worst verdict of all scores; ``undecided`` ranks below ``not worse``."""
        order: Sequence[GateVerdict] = ("worse", "undecided", "not worse", "better")
        return min((score.verdict for score in self.scores), key=order.index)

    @property
    def passed(self) -> bool:
        """Whether every score shows that the new agent is better, or at least not worse by more than the margin."""
        return self.status == PASSED

    @property
    def status(self) -> int:
        """Exit status of the gate command."""
        return {"better": PASSED, "not worse": PASSED, "worse": FAILED_GATE, "undecided": UNDECIDED}[self.verdict]

    @property
    def headline(self) -> str:
        if self.verdict == "undecided":
            return f"Undecided: it is not shown whether {self.new} is worse than {self.old}."
        return f"{_STANDINGS[self.status]}: {self.new} is {self.verdict} than {self.old}."

    def remarks(self) -> list[str]:
        """Sentences that complement the table: on games, doubts, undecided scores, and notes."""
        games = [score.finding(self.new, self.old) for score in self.scores if score.on == PAIRWISE]
        return [*games, *(sentence for score in self.scores for sentence in score.remarks()), *self.notes]

    def sections(self) -> Sequence[Section]:
        blocks: list[Block] = [Remarks([self.headline]), self.table(), Remarks(self.remarks()), self.picture()]
        return [Section("gate", "New against old", "Is the new agent worse than the old one?", blocks)]

    def table(self) -> Table:
        rows = [
            {
                "on": score.on,
                "title": score.title,
                "new": score.new,
                "old": score.old,
                "difference": score.result.difference,
                "queries": score.result.difference.n,
                "missing": score.result.missing,
                "verdict": score.verdict,
            }
            for score in self.scores
        ]
        level, units = f"{in_percent(self.scores[0].level)} interval", UNITS[self.scores[0].unit][1]
        columns = (
            Column("on", ""),
            Column("title", "Score", programs=False),
            Column("new", "New", FORM),
            Column("old", "Old", FORM),
            Column("difference", "Difference", SIGNED, "New minus old; for games, new's share minus one half.", level),
            Column(
                "queries", units.capitalize(), COUNT, f"{units.capitalize()} with a figure of both; each counts once."
            ),
            Column("missing", "Missing", COUNT, f"{units.capitalize()} without a figure of both."),
            Column("verdict", "Verdict"),
        )
        return Table("gate", "", columns, rows)

    def picture(self) -> Whiskers:
        """Plot of the differences with their intervals."""
        lines = [
            Line(score.title, [Mark(difference.value, difference.low, difference.high)])
            for score in self.scores
            if (difference := score.result.difference).value is not None
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
            "scores": [_json(score) for score in self.scores],
            "notes": list(self.notes),
        }

    def markdown(self) -> str:
        """Headline, table and remarks as Markdown, for a comment on a pull request."""
        from arena.present import files

        headline = files.sentence(self.headline, "md").strip()
        return f"### {headline}\n\n{files.markdown(self.table())}" + "".join(
            files.sentence(sentence, "md") for sentence in self.remarks()
        )

    def junit(self) -> str:
        """JUnit XML with a test case per score; ``worse`` is a failure, ``undecided`` an error."""
        from arena.present.files import Case, CaseKind, junit

        kinds: Mapping[str, CaseKind] = {"worse": "failure", "undecided": "error"}
        cases = []
        for score in self.scores:
            details = "\n".join([score.finding(self.new, self.old), *score.remarks()])
            name = f"{self.new} against {self.old} on {score.on}"
            cases.append(Case(name, score.verdict, details, kinds.get(score.verdict, "")))
        return junit("ragleague gate", cases)

    def __repr__(self) -> str:
        lines = [line for score in self.scores for line in (score.finding(self.new, self.old), *score.remarks())]
        return "\n".join([self.headline, *lines, *self.notes])

    def _repr_markdown_(self) -> str:
        return self.markdown()


def _json(score: Compared) -> dict[str, Any]:
    result, difference = score.result, score.result.difference
    return {
        "on": score.on,
        "verdict": score.verdict,
        "new": score.new,
        "old": score.old,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "level": score.level,
        "method": difference.method,
        "queries": difference.n,
        "missing": result.missing,
        "judgments": {
            name: {"missing": missing, "of": wanted}
            for name, (missing, wanted) in zip(("new", "old"), score.judgments, strict=True)
        },
        "bounds": None if result.ends is None else list(result.ends),
        "wins": result.wins,
        "ties": result.ties,
        "losses": result.losses,
        "more_queries": None if score.doubts else result.more,
        "doubts": list(score.doubts),
        "notes": list(score.notes),
    }
