"""Table of support scores: whether the documents that answers cite support the answers' sentences."""

from __future__ import annotations

from typing import Any, Final

from arena.boards.quantities import quantity
from arena.boards.scores import ScoreBoard
from arena.present.blocks import Section
from arena.present.numbers import COUNT, PERCENT, counted
from arena.present.table import Column, Table, TableRow
from arena.results.support import SupportResults
from judges.types import repeat_of
from retrieval_eval.scores.support import WEIGHTS

_PRECISION, _RECALL = map(quantity, ("support_precision", "support_recall"))
_COLUMNS: Final = (
    Column("agent", "Agent"),
    _PRECISION.column("precision", interval=True),
    _RECALL.column("recall", interval=True),
    Column("answers", "Answers", COUNT, "Those with a precision."),
    Column("cited_share", "Cite", PERCENT, "Share of its sentences that cite anything."),
    Column("full", "Full", COUNT, "Pairs of a sentence and a document that it cites."),
    Column("partial", "Partial", COUNT),
    Column("none", "None", COUNT),
    Column("invented", "Invented", COUNT, "Among these: numbers that stand for no document."),
    Column("missing", "Missing", COUNT, "Pairs whose judgment failed or was never made; in no score."),
    Column("unjudged", "Not judged", COUNT, "The same, and those whose document has no text."),
    Column("unread", "Not read", COUNT, "Answers of which nobody knows what their sentences cite; in no score."),
)

_SCORES: Final = ("precision", "recall")
_COUNTS: Final = ("invented", "unjudged", "missing")


class SupportBoard(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Support scores by agent, with the number of (sentence, cited document) pairs at each level of support."""

    results: SupportResults

    def sections(self) -> list[Section]:
        lead = "Do the documents that the answers cite say what the answers claim?"
        scope = "the first citation of each sentence" if self.results.which == "first" else "every citation"
        note = f"Of {scope}. Means over the answers where a score is defined; intervals over queries."
        others = [
            f"{agent}: marks such as {marks.example} are read as no citations, in {counted(marks.answers, 'answer')}."
            for agent, marks in self.results.marks.items()
        ]
        table = Table("support", "Support by agent", _COLUMNS, self._rows(), [note, *others])
        return [Section("support", "Support", lead, [table])]

    def _rows(self) -> list[TableRow]:
        rows: list[TableRow] = []
        for agent in dict.fromkeys([*self.scores[0].agents, *self.results.unread]):
            answers = [answer for (_, name), answer in self.results.answers.items() if repeat_of(name)[0] == agent]
            sentences = sum(answer.sentences for answer in answers)
            pairs = (sum(answer.pairs[level] for answer in answers) for level in range(len(WEIGHTS)))
            rows.append(
                {"agent": agent, "unread": self.results.unread.get(agent, 0)}
                | {name: scores.means.get(agent) for name, scores in zip(_SCORES, self.scores, strict=True)}
                | dict(zip(("none", "partial", "full"), pairs, strict=True))
                | {"answers": sum(answer.precision is not None for answer in answers)}
                | {"cited_share": sum(answer.cited for answer in answers) / sentences if sentences else None}
                | {name: sum(getattr(answer, name) for answer in answers) for name in _COUNTS}
            )
        values = {row["agent"]: row["precision"] and row["precision"].value for row in rows}
        return sorted(rows, key=lambda row: (values[row["agent"]] is None, -(values[row["agent"]] or 0)))

    def json(self) -> dict[str, Any]:
        return {
            "citations": self.results.which,
            "agents": {row["agent"]: row for row in self._rows()},
            "other_marks": dict(self.results.marks),
        }


def board(results: SupportResults) -> SupportBoard:
    return SupportBoard("support", results.scores, results=results)
