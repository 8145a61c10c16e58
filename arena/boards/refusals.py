"""Refusals of agents: scores with intervals, and what their answers do on each kind of question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from arena.boards.quantities import quantity
from arena.boards.scores import ScoreBoard
from arena.present.blocks import Section
from arena.present.numbers import COUNT, FIGURE
from arena.present.table import INTERVAL, Column, Table, TableRow, flat
from arena.results.refusals import AnswerKey, RefusalResults
from judges.types import Answerability, repeat_of
from retrieval_eval.stats.bootstrap import mean_estimates, units_of

_DOES: Final = ("answers", "asks_back", "refuses")
_KINDS: Final[Mapping[Answerability | None, tuple[str, Collection[int]]]] = {
    "answerable": ("Answerable", (0,)),
    "unanswerable": ("Unanswerable", (1, 2)),
    "partial": ("Partial", ()),
    "underspecified": ("Underspecified", (1,)),
    None: ("Not known", ()),
}
"""By kind of question, its name in the table and the numbers of the reactions that are right, if any are."""
_BY_KIND: Final = (
    Column("agent", "Agent"),
    Column("questions", "Questions"),
    Column("answers", "Answers", COUNT),
    Column("asks_back", "Asks back", COUNT),
    Column("refuses", "Refuses", COUNT),
    Column("missing", "Missing", COUNT, "Judgments that failed or were never made; in no score."),
    Column("right", "Right", FIGURE, "Answered; declined; asked back. Not known of a partial one.", INTERVAL),
)


class RefusalBoard(ScoreBoard, frozen=True, eq=False, kw_only=True):
    """Scores of refusals by agent, and counts of what the answers do, by agent and kind of question."""

    results: RefusalResults

    def sections(self) -> list[Section]:
        lead = "Does each agent answer what the documents answer, and only that?"
        columns = [
            Column("agent", "Agent"),
            *(Column(each.column, each.heading, FIGURE, quantity(each.name).meaning, INTERVAL) for each in self.scores),
            Column("refusals_missing", "Missing", COUNT, "Judgments that failed or were never made; in no score."),
        ]
        rows = [{"agent": agent, **self.columns(agent)} for agent in self.agents()]
        note = (
            "To decline is to refuse or to ask back. Partial and underspecified questions are in no score here. "
            "Intervals over queries, or over conversations."
        )
        if not self.results.answerability:
            note = "The data does not say which questions can be answered: add a column 'answerable' to the queries."
        return [
            Section(
                "refusals",
                "Refusals",
                lead,
                [
                    Table("refusals", "Answered and declined", columns, rows, [note]),
                    Table("reactions", "What answers do, by question", _BY_KIND, [*self._by_kind()]),
                ],
            )
        ]

    def _by_kind(self) -> Iterator[TableRow]:
        for agent in self.agents():
            for kind, (name, right) in _KINDS.items():
                values = {
                    key: value
                    for key, value in self.results.reactions.items()
                    if repeat_of(key[0])[0] == agent and self.results.answerability.get(key[1]) == kind
                }
                if values:
                    counts = Counter(values.values())
                    row = {"agent": agent, "kind": kind or "unknown", "questions": name, "missing": counts[None]}
                    yield row | {word: counts[value] for value, word in enumerate(_DOES)} | self._right(values, right)

    def _right(self, values: Mapping[AnswerKey, int | None], right: Collection[int]) -> TableRow:
        correct = np.array([[np.nan if value is None else float(value in right) for value in values.values()]])
        (share,) = mean_estimates(correct, units_of([query_id for _, query_id in values], self.scores[0].clusters))
        return {"right": share if right else None}

    def json(self) -> dict[str, Any]:
        agents: dict[str, dict[str, Any]] = {agent: flat(self.columns(agent)) for agent in self.agents()}
        for row in self._by_kind():
            counts = flat({name: row[name] for name in (*_DOES, "missing", "right")})
            agents[row["agent"]].setdefault("questions", {})[row["kind"]] = counts
        return {"agents": agents}


def board(results: RefusalResults) -> RefusalBoard:
    return RefusalBoard("refusals", results.scores, results=results)
