"""What people said on the pages and by files, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT
from arena.present.table import Column, Table, records
from arena.store import Store
from arena.store.annotations import Annotations

_COLUMNS: Final = (
    Column("annotator", "Annotator"),
    Column("kind", "Kind"),
    Column("labels", "Labels", COUNT),
    Column("skipped", "Skipped", COUNT),
    Column("replaced", "Replaced", COUNT, "Said anew: the later word stands."),
    Column("last", "Last"),
)


@dataclass(frozen=True, slots=True)
class VoteCounts(Board):
    """A line for each annotator and kind of what they said."""

    tournament: str
    table: Table

    def sections(self) -> list[Section]:  # noqa: D102
        return [Section("votes", "What people said", "", [self.table])]

    def json(self) -> dict[str, Any]:  # noqa: D102
        return {"tournament": self.tournament, "votes": records(self.table)}


def vote_counts(store: Store, tournament: str) -> VoteCounts:
    """Count a tournament's annotations."""
    kept = Annotations(store, tournament)
    latest, rows = kept.latest(), []
    for (annotator, kind), ever in sorted(Counter((own.annotator, own.kind) for own in kept.history()).items()):
        own = [said for said in latest if (said.annotator, said.kind) == (annotator, kind)]
        labels, last = sum(said.value is not None for said in own), max(said.at for said in own)[:19]
        row = {"annotator": annotator, "kind": kind.value, "labels": labels, "skipped": len(own) - labels}
        rows.append(row | {"replaced": ever - len(own), "last": last})
    nobody = f"nobody has said anything of {tournament!r} yet; 'ragleague ui' has a page for it"
    return VoteCounts(tournament, Table("votes", "", _COLUMNS, rows, () if rows else (nobody,)))
