"""Agreement of two sets of labels: columns, coefficients, confusion tables, and the board that compares label files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import replace

from arena.present.blocks import Block, Board, Figures, Remarks, Section, estimated
from arena.present.numbers import ALIGNED, COUNT, FIGURE, P_VALUE, PERCENT, counted
from arena.present.table import INTERVAL, Column, Table, crossed, flat, plain
from arena.ratings.results import UNITS
from retrieval_eval.stats.bootstrap import FEW_QUERIES, Clusters

if TYPE_CHECKING:
    from retrieval_eval.data.trec import FaultyLine, Note, Qrels
    from retrieval_eval.stats.agreement import LabelAgreement, RaterAgreement

MOST_NAMED: Final = 3
"""Largest number of queries, and of faulty lines of a file, that a message names."""
COEFFICIENTS: Final = (
    Column("agreement", "Same label", PERCENT, interval=INTERVAL),
    Column("kappa", "Kappa", FIGURE, interval=INTERVAL),
    Column("kappa_linear", "Kappa, linear", FIGURE, interval=INTERVAL),
    Column("kappa_quadratic", "Kappa, quadratic", FIGURE, interval=INTERVAL),
    Column("alpha", "Alpha", FIGURE, interval=INTERVAL),
    Column("alpha_ordinal", "Alpha, ordinal", FIGURE, interval=INTERVAL),
)
"""Columns of the coefficients; the keys are fields of ``LabelAgreement``."""
_BINARISED: Final = (
    Column("qrels", "Labels"),
    Column("threshold", "Relevant", ALIGNED),
    Column("both", "Both", COUNT, "Documents that both call relevant."),
    Column("first_only", "First only", COUNT),
    Column("second_only", "Second only", COUNT),
    Column("neither", "Neither", COUNT),
    Column("kappa", "Kappa", FIGURE, interval=INTERVAL),
)


def correlation_columns(headings: Mapping[str, str]) -> Iterator[Column]:
    for key, heading in headings.items():
        yield Column(key, heading, FIGURE, interval=INTERVAL)
        yield Column(f"{key}_p", "p", P_VALUE, "Of no correlation, two-sided.")


def coefficients(agreement: LabelAgreement | RaterAgreement) -> Figures:
    known = (column for column in COEFFICIENTS if hasattr(agreement, column.key))
    return Figures(
        [estimated(column.heading, getattr(agreement, column.key), column.form, column.explained) for column in known]
    )


def confusion(
    agreement: LabelAgreement,
    title: str,
    first: str,
    second: str,
    names: Sequence[str] = (),
    *,
    name: str = "confusion",
) -> Table:
    """Confusion matrix, the first rater in rows; ``names`` of the labels default to their numbers."""
    labels = names or list(map(str, agreement.scale))
    return crossed(name, title, f"{first}, {second} across", (labels, labels), agreement.confusion)


def agreement_json(agreement: LabelAgreement) -> dict[str, Any]:
    binarised = [flat(table) for table in agreement.binarised]
    return flat(agreement) | {"coverage": share_labelled(agreement), "binarised": binarised}


def share_labelled(agreement: LabelAgreement) -> float | None:
    """Share of the reference's query-document pairs that the other set labels too; ``None`` if there are no pairs."""
    reference_pairs = agreement.n + agreement.first_only
    return agreement.n / reference_pairs if reference_pairs else None


def as_read(qrels: Qrels, reference: Qrels) -> dict[str, Any]:
    return {
        "labels": len(qrels),
        "faulty": qrels.faulty,
        "notes": [note.text for note in qrels.notes],
        "outside_scale": outside_scale(qrels, reference),
    }


def outside_scale(qrels: Qrels, reference: Qrels) -> list[dict[str, int]]:
    """Labels below the reference's lowest label (0 at most) or above its highest, each with its number of documents."""
    low, high = _scale(reference)
    lowest = 0 if qrels is reference else low
    counts = Counter(label for labels in qrels.labels.values() for label in labels.values())
    return [{"value": label, "n": count} for label, count in sorted(counts.items()) if not lowest <= label <= high]


def _scale(reference: Qrels) -> tuple[int, int]:
    values = {label for labels in reference.labels.values() for label in labels.values()}
    return min({0, *values}), max({0, *values})


def remark_on_scale(name: str, qrels: Qrels, reference: Qrels, reference_name: str) -> Iterator[str]:
    outside = outside_scale(qrels, reference)
    labels = ", ".join(f"{entry['value']} ({entry['n']:,})" for entry in outside)
    if labels and qrels is reference:
        number = counted(sum(entry["n"] for entry in outside), "label")
        yield f"{name}: {number} below 0: {labels}; measures take them for not relevant, kappa for labels of their own"
    elif labels:
        low, high = _scale(reference)
        yield f"{name}: labels outside the {low} to {high} of {reference_name}: {labels}; each counts as it is"


def remarks_on(name: str, notes: Iterable[Note], faulty: Sequence[FaultyLine]) -> Iterator[str]:
    for note in notes:
        yield f"{name}: {note.text}"
    if faulty:
        yield f"{name}: {counted(len(faulty), 'faulty line')} left out"
        yield from (f"  {fault}" for fault in faulty[:MOST_NAMED])
        if len(faulty) > MOST_NAMED:
            yield f"  ... and {len(faulty) - MOST_NAMED:,} more (--format json: all)"


class QrelsAgreement(Board, frozen=True):
    """Agreement of each other set of labels with the first set in ``qrels``, by the name of the set."""

    agreements: Mapping[str, LabelAgreement]
    qrels: Mapping[str, Qrels]
    clusters: Clusters = field(default_factory=dict)

    def sections(self) -> list[Section]:
        binarised = [
            {"qrels": name, **flat(table), "threshold": f">= {table.threshold}"}
            for name, agreement in self.agreements.items()
            for table in agreement.binarised
        ]
        blocks: list[Block] = [self._coefficients()]
        if binarised:
            blocks.append(Table("binarised", "Relevant or not, from each label on", _BINARISED, binarised))
        if len(self.agreements) == 1:
            title = "Documents by their two labels"
            blocks += [
                confusion(agreement, title, "First", "second")
                for agreement in self.agreements.values()
                if agreement.scale
            ]
        return [Section("agreement", "Agreement", "", [*blocks, self.notes()])]

    def notes(self) -> Remarks:
        reference = next(iter(self.qrels))
        sentences = [
            f"against {reference}: {len(self.qrels[reference]):,} labels; figures are of the pairs that both have"
        ]
        for name, qrels in self.qrels.items():
            agreement = self.agreements.get(name)
            if agreement is not None and agreement.first_only + agreement.second_only:
                sentences.append(
                    f"{name}: lacks {agreement.first_only:,} of {reference}'s pairs, "
                    f"has {agreement.second_only:,} others"
                )
            if agreement is not None and agreement.queries < FEW_QUERIES:
                units = counted(agreement.queries, *UNITS["conversation" if self.clusters else "query"])
                sentences.append(f"{name}: {units} in common, so intervals are rough")
            sentences += remark_on_scale(name, qrels, self.qrels[reference], reference)
            sentences += remarks_on(name, qrels.notes, qrels.faulty)
        return Remarks(sentences)

    def json(self) -> Any:
        reference, labels = next(iter(self.qrels.items()))
        sets = {name: agreement_json(own) | as_read(self.qrels[name], labels) for name, own in self.agreements.items()}
        return plain({"reference": {"name": reference, **as_read(labels, labels)}, "sets": sets})

    def _coefficients(self) -> Table:
        tables = (table for agreement in self.agreements.values() for table in agreement.binarised)
        thresholds = sorted({table.threshold for table in tables})
        columns = [
            Column("qrels", "Labels"),
            Column("coverage", "Coverage", PERCENT, "Share of the first set's pairs that the other labels as well."),
            Column("faulty", ""),
            Column("n", "Pairs", COUNT, "Documents of a query that both label."),
            *(Column(name, "") for name in ("queries", "first_only", "second_only")),
        ]
        for column in COEFFICIENTS:
            if column.key == "kappa":
                columns.append(column)
            else:  # people get one interval, so that the table fits a terminal
                ends = (Column(f"{column.key}_{end}", "") for end in ("low", "high"))
                columns += [replace(column, interval=""), *ends]
        columns += [Column(f"kappa_at_{threshold}", "") for threshold in thresholds]
        rows = [
            {"qrels": name, "faulty": len(self.qrels[name].faulty), "coverage": share_labelled(agreement)}
            | flat(agreement)
            | {f"kappa_at_{table.threshold}": table.kappa.value for table in agreement.binarised}
            for name, agreement in self.agreements.items()
        ]
        return Table("agreement", "", columns, rows)
