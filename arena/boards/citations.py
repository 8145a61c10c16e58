"""Citations: which share of the documents that answers cite is relevant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, PERCENT_1, SCORE
from arena.present.plain import flat
from arena.present.table import Column, Table

if TYPE_CHECKING:
    from arena.boards.documents import CitationBoard, Source
    from retrieval_eval.citations import CitationScores

Row: TypeAlias = dict[str, Any]

_COLUMNS: Final = (
    Column("agent", "Agent"),
    Column("precision", "Precision", SCORE, "Share of the labelled documents cited that are relevant.", "95% interval"),
    Column("queries", "Queries", COUNT, "Those on which precision is defined."),
    Column("uncited", "Cite nothing", COUNT, "Answers that cite nothing; they are in no mean."),
    Column("unlabelled", "No label", COUNT, "Answers that cite only documents without a label; they are in no mean."),
    Column("cited", "Cited", COUNT, "Documents cited, once for each answer."),
    Column("labelled", ""),
    Column("relevant", ""),
    Column("unresolved", ""),
    Column("coverage", "Labelled", PERCENT_1, "Share of the documents cited that have a label."),
)
_WHOSE: Final[Mapping[Source, str]] = {"judge": "the judge", "people": "people"}
_KEYS: Final[Mapping[Source, str]] = {"judge": "citation_precision", "people": "citation_precision_people"}


@dataclass(frozen=True, slots=True)
class Citations(Board):
    """Citations of a tournament's agents; ``order`` is that of their ratings, others follow, most precise first."""

    cited: CitationBoard
    order: Sequence[str] = ()

    def sections(self) -> list[Section]:  # noqa: D102
        lead = "Are the documents that the answers cite relevant?"
        note = f"Relevant from label {self.cited.relevant} on; means over the queries where precision is defined."
        tables = [
            citations_table(f"citations_{source}", f"Citations, by labels of {_WHOSE[source]}", own, self.order, [note])
            for source, own in self.cited.scores.items()
        ]
        return [Section("citations", "Citations", lead, tables)]

    def json(self) -> Row:  # noqa: D102
        return {"relevant": self.cited.relevant, **{whose: citations(own) for whose, own in self.cited.scores.items()}}

    def columns(self, agent: str) -> Row:
        """One agent's precision beside its ratings."""
        scores = self.cited.scores.items()
        return {_KEYS[source]: own[agent].precision.value if agent in own else None for source, own in scores}


def citations(scores: Mapping[str, CitationScores]) -> dict[str, Row]:
    """All figures by agent, flat."""
    return {agent: flat(own) | {"coverage": own.coverage} for agent, own in scores.items()}


def citations_table(
    name: str, title: str, scores: Mapping[str, CitationScores], order: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    """Citation precision of agents in this order, then by precision."""
    best = sorted(scores, key=lambda agent: (-(scores[agent].precision.value or 0), agent))
    agents = [*(agent for agent in order if agent in scores), *(agent for agent in best if agent not in order)]
    figures = citations(scores)
    lost = [f"{agent} {own.unresolved}" for agent, own in scores.items() if own.unresolved]
    said = [f"Numbers that stand for no document, left out: {', '.join(lost)}."] if lost else []
    return Table(name, title, _COLUMNS, [{"agent": agent, **figures[agent]} for agent in agents], [*notes, *said])
