"""How far two sets of labels agree: the columns, figures and counts that boards show of it; sets of labels of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import replace

from arena.present.blocks import Block, Board, Figure, Figures, Remarks, Section
from arena.present.numbers import ALIGNED, COUNT, FIGURE, P_VALUE, PERCENT, counted
from arena.present.table import Column, Table, crossed, flat, plain
from arena.ratings.results import UNITS
from retrieval_eval.stats.bootstrap import FEW_QUERIES, Clusters

if TYPE_CHECKING:
    from retrieval_eval.data.trec import FaultyLine, Note, Qrels
    from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement

WIDE: Final = "95% interval"
MOST_NAMED: Final = 3
"""Queries, and faulty lines of one file, that are named."""
COEFFICIENTS: Final = (
    Column("agreement", "Same label", PERCENT, interval=WIDE),
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
    Column("kappa_linear", "Kappa, linear", FIGURE, interval=WIDE),
    Column("kappa_quadratic", "Kappa, quadratic", FIGURE, interval=WIDE),
    Column("alpha", "Alpha", FIGURE, interval=WIDE),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE, interval=WIDE),
)
"""Of a ``LabelAgreement``, by its fields."""
_BINARISED: Final = (
    Column("qrels", "Labels"),
    Column("threshold", "Relevant", ALIGNED),
    Column("both", "Both", COUNT, "Documents that both call relevant."),
    Column("first_only", "First only", COUNT),
    Column("second_only", "Second only", COUNT),
    Column("neither", "Neither", COUNT),
    Column("kappa", "Kappa", FIGURE, interval=WIDE),
)


def correlation_columns(headings: Mapping[str, str]) -> Iterator[Column]:
    """Correlations by key and heading, each with its interval and its test."""
    for key, heading in headings.items():
        yield Column(key, heading, FIGURE, interval=WIDE)
        yield Column(f"{key}_p", "p", P_VALUE, "Of no correlation, two-sided.")


def coefficients(agreement: LabelAgreement | RaterAgreement) -> Figures:
    """All coefficients that it has, side by side."""
    known = ((column, getattr(agreement, column.key)) for column in COEFFICIENTS if hasattr(agreement, column.key))
    return Figures([Figure(at.heading, one.value, at.form, at.explained, one.low, one.high) for at, one in known])


def confusion(
    agreement: LabelAgreement,
    title: str,
    first: str,
    second: str,
    names: Sequence[str] = (),
    *,
    name: str = "confusion",
) -> Table:
    """How often the first gave the row's label where the second gave the column's.

    ``names`` are those of the labels, where they have others than their numbers.
    """
    labels = names or list(map(str, agreement.scale))
    return crossed(name, title, f"{first}, {second} across", (labels, labels), agreement.confusion)


def agreement_json(agreement: LabelAgreement) -> dict[str, Any]:
    """All figures of an agreement."""
    binarised = [flat(one) for one in agreement.binarised]
    return flat(agreement) | {"coverage": share_labelled(agreement), "binarised": binarised}


def share_labelled(agreement: LabelAgreement) -> float | None:
    """Share of the reference's pairs that the other set labels as well."""
    known = agreement.n + agreement.first_only
    return agreement.n / known if known else None


def as_read(qrels: Qrels, reference: Qrels) -> dict[str, Any]:
    """What was read of a set of labels, which lines were left out, and which labels the reference's scale lacks."""
    return {
        "labels": len(qrels),
        "faulty": qrels.faulty,
        "notes": [note.text for note in qrels.notes],
        "outside_scale": outside_scale(qrels, reference),
    }


def outside_scale(qrels: Qrels, reference: Qrels) -> list[dict[str, int]]:
    """Labels beyond the reference's scale, each with the number of documents that have it.

    A scale reaches from 0, or the lowest label of the reference, to its highest; of the reference itself from 0 on.
    """
    low, high = _scale(reference)
    least = 0 if qrels is reference else low
    counts = Counter(label for labels in qrels.labels.values() for label in labels.values())
    return [{"value": label, "n": count} for label, count in sorted(counts.items()) if not least <= label <= high]


def _scale(reference: Qrels) -> tuple[int, int]:
    known = {label for labels in reference.labels.values() for label in labels.values()}
    return min({0, *known}), max({0, *known})


def remark_on_scale(name: str, qrels: Qrels, reference: Qrels, whose: str) -> Iterator[str]:
    """Which labels lie beyond the scale of those called ``whose``, if any do."""
    outside = outside_scale(qrels, reference)
    labels = ", ".join(f"{own['value']} ({own['n']:,})" for own in outside)
    if labels and qrels is reference:
        number = counted(sum(own["n"] for own in outside), "label")
        yield f"{name}: {number} below 0: {labels}; measures take them for not relevant, kappa for labels of their own"
    elif labels:
        low, high = _scale(reference)
        yield f"{name}: labels outside the {low} to {high} of {whose}: {labels}; each counts as it is"


def remarks_on(name: str, notes: Iterable[Note], faulty: Sequence[FaultyLine]) -> Iterator[str]:
    """What is odd about a file, and which lines were left out."""
    for note in notes:
        yield f"{name}: {note.text}"
    if faulty:
        yield f"{name}: {counted(len(faulty), 'faulty line')} left out"
        yield from (f"  {fault}" for fault in faulty[:MOST_NAMED])
        if len(faulty) > MOST_NAMED:
            yield f"  ... and {len(faulty) - MOST_NAMED:,} more (--format json: all)"


class QrelsAgreement(Board, frozen=True):
    """How sets of labels agree with the first of ``qrels``, by name."""

    agreements: Mapping[str, LabelAgreement]
    qrels: Mapping[str, Qrels]
    clusters: Clusters = field(default_factory=dict)

    def sections(self) -> list[Section]:
        binarised = [
            {"qrels": name, **flat(one), "threshold": f">= {one.threshold}"}
            for name, own in self.agreements.items()
            for one in own.binarised
        ]
        blocks: list[Block] = [self._coefficients()]
        if binarised:
            blocks.append(Table("binarised", "Relevant or not, from each label on", _BINARISED, binarised))
        if len(self.agreements) == 1:
            title = "Documents by their two labels"
            blocks += [confusion(own, title, "First", "second") for own in self.agreements.values() if own.scale]
        return [Section("agreement", "Agreement", "", [*blocks, self.notes()])]

    def notes(self) -> Remarks:
        """What a reader of the figures must know."""
        reference = next(iter(self.qrels))
        said = [f"against {reference}: {len(self.qrels[reference]):,} labels; figures are of the pairs that both have"]
        for name, one in self.qrels.items():
            own = self.agreements.get(name)
            if own is not None and own.first_only + own.second_only:
                said.append(f"{name}: lacks {own.first_only:,} of {reference}'s pairs, has {own.second_only:,} others")
            if own is not None and own.queries < FEW_QUERIES:
                units = counted(own.queries, *UNITS["conversation" if self.clusters else "query"])
                said.append(f"{name}: {units} in common, so intervals are rough")
            said += remark_on_scale(name, one, self.qrels[reference], reference)
            said += remarks_on(name, one.notes, one.faulty)
        return Remarks(said)

    def json(self) -> Any:
        reference, labels = next(iter(self.qrels.items()))
        sets = {name: agreement_json(own) | as_read(self.qrels[name], labels) for name, own in self.agreements.items()}
        first = {"name": reference, **as_read(labels, labels)}
        return plain({"reference": first, "sets": sets})

    def _coefficients(self) -> Table:
        thresholds = sorted({one.threshold for own in self.agreements.values() for one in own.binarised})
        columns = [
            Column("qrels", "Labels"),
            Column("coverage", "Coverage", PERCENT, "Share of the first set's pairs that the other labels as well."),
            Column("faulty", ""),
            Column("n", "Pairs", COUNT, "Documents of a query that both label."),
            *(Column(name, "") for name in ("queries", "first_only", "second_only")),
        ]
        for own in COEFFICIENTS:
            if own.key == "kappa":
                columns.append(own)
            else:  # people get one interval, so that the table fits a terminal
                ends = (Column(f"{own.key}_{end}", "") for end in ("low", "high"))
                columns += [replace(own, interval=""), *ends]
        columns += [Column(f"kappa_at_{threshold}", "") for threshold in thresholds]
        rows = [
            {
                "qrels": name,
                "faulty": len(self.qrels[name].faulty),
                "coverage": share_labelled(own),
                **flat(own),
                **{f"kappa_at_{one.threshold}": one.kappa.value for one in own.binarised},
            }
            for name, own in self.agreements.items()
        ]
        return Table("agreement", "", columns, rows)
