"""Runs scored by files of relevance labels, and how far such labels agree with each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import ALIGNED, COUNT, FIGURE, P_VALUE, PERCENT_1, SCORE_4, Form, Number, counted
from arena.present.plain import flat, plain
from arena.present.table import Column, Table

if TYPE_CHECKING:
    from retrieval_eval.run_scores import QrelsScores, RunScores
    from retrieval_eval.stats.agreement import LabelAgreement
    from retrieval_eval.trec import FaultyLine, Note, Qrels, Run

Row: TypeAlias = dict[str, Any]

FEW_QUERIES: Final = 10
"""With fewer queries a bootstrap over them has too little to draw from."""
_MOST_NAMED: Final = 3
"""Queries, and faulty lines of one file, that are named."""
_DECIMALS: Final = 12
"""Digits kept of measures, which are compared with those of other tools."""
_DIFFERENCE: Final = Number(3, signed=True)

_DIFFERENCES: Final = (
    Column("first", "Run"),
    Column("second", "Against"),
    Column("difference", "Difference", _DIFFERENCE, "Mean difference over queries.", "95% interval"),
    Column("outcomes", "W/T/L", ALIGNED, "Queries on which the run scores higher, the same, lower."),
    Column("p_t_holm", "p (t)", P_VALUE, "Paired t test, corrected for all pairs (Holm)."),
    Column("p_permutation_holm", "p (flips)", P_VALUE, "Sign-flip test, corrected for all pairs (Holm)."),
)
RANKINGS: Final = (
    Column("measure", "Measure"),
    Column("kendall_tau", "Kendall's tau", FIGURE, interval="95% interval"),
    Column("spearman", "Spearman's rho", FIGURE, interval="95% interval"),
    Column("swapped", "Swapped", COUNT, "Pairs that the two rank the other way round."),
    Column("topics", "Queries", COUNT, "Those that both label."),
)
_MEASURES: Final = {
    "nDCG": "Rewards relevant documents near the top, and highly relevant ones more; from 0 to 1.",
    "RR": "One over the rank of the first document with a label of {least} or more; 0 without one.",
    "Judged": "Share of the first documents that have a label.",
    "P": "Share of the first documents with a label of {least} or more.",
    "R": "Share of the documents with a label of {least} or more that are among the first.",
    "AP": "Mean precision at the ranks of documents with a label of {least} or more; from 0 to 1.",
}
"""What measures mean, by their names in ir-measures."""
_COEFFICIENTS: Final[Mapping[str, str]] = {
    "agreement": "Same label",
    "kappa": "Kappa",
    "kappa_linear": "Kappa, linear",
    "kappa_quadratic": "Kappa, quadratic",
    "alpha": "Alpha",
    "alpha_ordinal": "Alpha, ordinal",
}
_BINARISED: Final = (
    Column("qrels", "Labels"),
    Column("threshold", "Relevant", ALIGNED),
    Column("both", "Both", COUNT, "Documents that both call relevant."),
    Column("first_only", "First only", COUNT),
    Column("second_only", "Second only", COUNT),
    Column("neither", "Neither", COUNT),
    Column("kappa", "Kappa", FIGURE, interval="95% interval"),
)


@dataclass(frozen=True, slots=True)
class RunMetrics(Board):
    """Scores of runs; ``per_query`` also those of each query."""

    scores: RunScores
    qrels: Mapping[str, Qrels]
    runs: Mapping[str, Run]
    per_query: bool = False

    def sections(self) -> list[Section]:  # noqa: D102
        scores, order = self.scores, self._best_first()
        blocks: list[Block] = [self._runs(order)]
        if self.per_query:
            blocks.append(self._records("Scores by query"))
        blocks += self._differences(order)
        rankings = [
            {"qrels": other, **flat(own), "swapped": len(own.swapped)}
            for other, by_measure in scores.rankings.items()
            for own in by_measure.values()
        ]
        if rankings:
            title = f"Runs ranked as by {scores.reference}?"
            blocks.append(Table("rankings", title, [Column("qrels", "Labels"), *RANKINGS], rankings))
        return [Section("scores", "Scores", "", [*blocks, self.notes()])]

    def tables(self) -> list[Table]:
        """The scores for programs; then the tables for people."""
        return [self._records(), *Board.tables(self)]

    def notes(self) -> Remarks:
        """What a reader of the figures must know."""
        said: list[str] = []
        for name, own in self.scores.by_qrels.items():
            labels = self.qrels[name]
            said.append(f"{name}: {len(own.metrics.topics):,} queries, {len(labels):,} labels")
            said += [*_coverage_lines(name, own), *_lines_of(name, labels.notes, labels.faulty)]
        for run in self.runs.values():
            said += _lines_of(run.name, map(_said_of_ties, run.notes), run.faulty)
        return Remarks(said)

    def json(self) -> Any:
        """``runs`` and ``judged`` are by the first labels, ``qrels`` by each."""
        by_qrels = {name: _qrels_json(own, self.per_query) for name, own in self.scores.by_qrels.items()}
        first = by_qrels[self.scores.reference]
        shape = {
            "runs": first["runs"],
            "judged": first["judged"],
            "reference": self.scores.reference,
            "qrels": {name: own | _read(self.qrels[name]) for name, own in by_qrels.items()},
            "rankings": self.scores.rankings,
            "notes": {run: [note.text for note in one.notes] for run, one in self.runs.items() if one.notes},
            "settings": self.scores.settings,
        }
        return plain(shape, _DECIMALS)

    def _best_first(self) -> list[str]:
        """Runs by the first measure and the first labels."""
        metrics = self.scores.by_qrels[self.scores.reference].metrics
        return sorted(metrics.runs, key=lambda run: (-metrics.value(run, metrics.measures[0]), run))

    def _runs(self, order: Sequence[str]) -> Table:
        metrics = self.scores.by_qrels[self.scores.reference].metrics
        judged = [name for name in metrics.coverage[order[0]].judged if name not in metrics.measures]
        rows = [
            {"qrels": name, "run": run, **own.metrics.coverage[run].judged, **own.intervals[run]}
            for name, own in self.scores.by_qrels.items()
            for run in order
        ]
        several = "Labels" if len(self.scores.by_qrels) > 1 else ""
        return Table(
            "scores",
            "",
            [Column("qrels", several), Column("run", "Run"), *measures((*metrics.measures, *judged))],
            rows,
        )

    def _records(self, title: str = "") -> Table:
        """A record of each set of labels and run, or of each query as well."""
        metrics = self.scores.by_qrels[self.scores.reference].metrics
        judged = list(metrics.coverage[metrics.runs[0]].judged)
        if self.per_query:
            columns = [Column("qrels", "Labels"), Column("run", "Run"), Column("qid", "Query")]
            columns += [*(Column(name, name, SCORE_4) for name in metrics.measures), Column("missing", "")]
            rows = [row for name, own in self.scores.by_qrels.items() for row in _query_rows(name, own)]
        else:
            names = dict.fromkeys((*judged, *metrics.measures))
            columns = [Column(name, "") for name in ("qrels", "run", *names, "topics", "missing", "unlabelled")]
            rows = [row for name, own in self.scores.by_qrels.items() for row in _run_rows(name, own)]
        return Table("records", title, columns, [plain(row, _DECIMALS) for row in rows])

    def _differences(self, order: Sequence[str]) -> Iterator[Table]:
        """By the first measure: every run against the baseline, or neighbours in the order."""
        main = self.scores.by_qrels[self.scores.reference].metrics.measures[0]
        pairs = self.scores.by_qrels[self.scores.reference].comparisons[main]
        by_runs = {(pair.first, pair.second): pair for own in pairs for pair in (own, own.turned())}
        if not by_runs:
            return
        baseline = self.scores.settings.baseline
        wanted = pairwise(order) if baseline is None else [(run, baseline) for run in order if run != baseline]
        shown = [by_runs[run, other] for run, other in wanted]
        rows = [{**asdict(one), "difference": one.difference} for one in shown]
        for row in rows:
            row["outcomes"] = f"{row['wins']}/{row['ties']}/{row['losses']}"
        what = "of neighbours" if baseline is None else "to the baseline"
        note = f"p-values are corrected for {counted(len(pairs), 'pair')}; --json has all, by each measure."
        yield Table("differences", f"Differences {what} by {main}", _DIFFERENCES, rows, [note])


@dataclass(frozen=True, slots=True)
class QrelsAgreement(Board):
    """How sets of labels agree with the first of ``qrels``, by name."""

    agreements: Mapping[str, LabelAgreement]
    qrels: Mapping[str, Qrels]
    settings: Mapping[str, int]

    def sections(self) -> list[Section]:  # noqa: D102
        binarised = [
            {"qrels": name, **flat(one), "threshold": f">= {one.threshold}"}
            for name, own in self.agreements.items()
            for one in own.binarised
        ]
        blocks: list[Block] = [self._coefficients()]
        if binarised:
            blocks.append(Table("binarised", "Relevant or not, from each label on", _BINARISED, binarised))
        if len(self.agreements) == 1:
            blocks += [_confusion(own) for own in self.agreements.values() if own.scale]
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
                said.append(f"{name}: {counted(own.queries, 'query', 'queries')} in common, so intervals are rough")
            said += _lines_of(name, one.notes, one.faulty)
        return Remarks(said)

    def json(self) -> Any:  # noqa: D102
        reference = next(iter(self.qrels))
        sets = {name: agreement_json(own) | _read(self.qrels[name]) for name, own in self.agreements.items()}
        first = {"name": reference, **_read(self.qrels[reference])}
        return plain({"reference": first, "sets": sets, "settings": self.settings})

    def _coefficients(self) -> Table:
        thresholds = sorted({one.threshold for own in self.agreements.values() for one in own.binarised})
        columns = [
            Column("qrels", "Labels"),
            Column("coverage", "Coverage", PERCENT_1, "Share of the first set's pairs that the other labels as well."),
            Column("faulty", ""),
            Column("n", "Pairs", COUNT, "Documents of a query that both label."),
            *(Column(name, "") for name in ("queries", "first_only", "second_only")),
        ]
        for name, heading in _COEFFICIENTS.items():
            if name == "kappa":
                columns.append(Column(name, heading, FIGURE, interval="95% interval"))
            else:
                columns += [Column(name, heading, FIGURE), Column(f"{name}_low", ""), Column(f"{name}_high", "")]
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


def measures(names: Iterable[str], form: Form = SCORE_4) -> Iterator[Column]:
    """Columns of measures, the first with its interval."""
    for place, name in enumerate(names):
        yield Column(name, name, form, _meaning(name), interval="" if place else "95% interval")


def _meaning(measure: str) -> str:
    """Of a measure as ir-measures writes it, such as ``RR(rel=2)@5``; empty for those that are seldom asked for."""
    kind = measure.partition("@")[0].partition("(")[0]
    known = _MEASURES.get(kind, "")
    return known.format(least=found[1] if (found := re.search(r"rel=(\d+)", measure)) else 1)


def agreement_json(own: LabelAgreement) -> Row:
    """All figures of an agreement."""
    return flat(own) | {"coverage": share_labelled(own), "binarised": [flat(one) for one in own.binarised]}


def share_labelled(own: LabelAgreement) -> float | None:
    """Share of the reference's pairs that the other set labels as well."""
    known = own.n + own.first_only
    return own.n / known if known else None


def _confusion(own: LabelAgreement) -> Table:
    columns = [Column("label", "First, second across"), *(Column(str(n), str(n), COUNT) for n in own.scale)]
    rows = [
        {"label": str(label), **dict(zip(map(str, own.scale), counts, strict=True))}
        for label, counts in zip(own.scale, own.confusion, strict=True)
    ]
    return Table("confusion", "Documents by their two labels", columns, rows)


def _lines_of(name: str, notes: Iterable[Note], faulty: Sequence[FaultyLine]) -> Iterator[str]:
    """What is odd about a file, and which lines were left out."""
    for note in notes:
        yield f"{name}: {note.text}"
    if faulty:
        yield f"{name}: {counted(len(faulty), 'faulty line')} left out"
        yield from (f"  {fault}" for fault in faulty[:_MOST_NAMED])
        if len(faulty) > _MOST_NAMED:
            yield f"  ... and {len(faulty) - _MOST_NAMED:,} more (--json: all)"


def _coverage_lines(name: str, own: QrelsScores) -> Iterator[str]:
    metrics = own.metrics
    if len(metrics.topics) < FEW_QUERIES:
        yield f"{name}: fewer than {FEW_QUERIES} queries, so intervals are rough"
    if metrics.without_relevant:
        yield f"{name}: {_queries(metrics.without_relevant)} without a label above 0, where every run scores 0"
    for run in metrics.runs:
        coverage = metrics.coverage[run]
        if coverage.missing:
            yield f"{run}: lacks {_queries(coverage.missing)} of {name}, which count as 0"
        if coverage.unlabelled:
            yield f"{run}: {_queries(coverage.unlabelled)} without labels in {name}, left out"


def _queries(query_ids: Sequence[str]) -> str:
    shown = ", ".join(query_ids[:_MOST_NAMED]) + (", ..." if len(query_ids) > _MOST_NAMED else "")
    return f"{counted(len(query_ids), 'query', 'queries')} ({shown})"


def _said_of_ties(note: Note) -> Note:
    """Measures do not all break ties alike, which the note of a run alone cannot know."""
    if note.kind != "ties":
        return note
    text = f"{note.count:,} documents have the score of another one of their query; of these trec_eval's measures take "
    return replace(note, text=text + "the higher doc_id first, reciprocal rank at k and Judged@k the lower")


def _read(qrels: Qrels) -> Row:
    """What was read of a set of labels, and which lines were left out."""
    return {"labels": len(qrels), "faulty": qrels.faulty, "notes": [note.text for note in qrels.notes]}


def _qrels_json(own: QrelsScores, per_query: bool) -> Row:
    metrics = own.metrics
    shape: Row = {
        "topics": len(metrics.topics),
        "without_relevant": metrics.without_relevant,
        "runs": {run: {name: metrics.value(run, name) for name in metrics.measures} for run in metrics.runs},
        "judged": {run: metrics.coverage[run].judged for run in metrics.runs},
        "intervals": {
            run: {name: [one.low, one.high] for name, one in of_run.items()} for run, of_run in own.intervals.items()
        },
        "missing": {run: metrics.coverage[run].missing for run in metrics.runs},
        "unlabelled": {run: metrics.coverage[run].unlabelled for run in metrics.runs},
        "comparisons": own.comparisons,
    }
    if per_query:
        shape["per_query"] = {
            run: {
                query_id: dict(zip(metrics.measures, metrics.values[place, :, at].tolist(), strict=True))
                for at, query_id in enumerate(metrics.topics)
            }
            for place, run in enumerate(metrics.runs)
        }
    return shape


def _run_rows(name: str, own: QrelsScores) -> Iterator[Row]:
    metrics = own.metrics
    for run in metrics.runs:
        coverage = metrics.coverage[run]
        values = {measure: metrics.value(run, measure) for measure in metrics.measures}
        counts = {"missing": len(coverage.missing), "unlabelled": len(coverage.unlabelled)}
        yield {"qrels": name, "run": run, **coverage.judged, **values, "topics": len(metrics.topics), **counts}


def _query_rows(name: str, own: QrelsScores) -> Iterator[Row]:
    metrics = own.metrics
    for place, run in enumerate(metrics.runs):
        missing = set(metrics.coverage[run].missing)
        for at, query_id in enumerate(metrics.topics):
            values = dict(zip(metrics.measures, metrics.values[place, :, at].tolist(), strict=True))
            yield {"qrels": name, "run": run, "qid": query_id, **values, "missing": int(query_id in missing)}
