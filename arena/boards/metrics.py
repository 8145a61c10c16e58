"""Boards on files of labels and of runs: agreement of two sets of labels, scores of runs, and pools of runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec import field
from msgspec.structs import asdict, replace

from arena.present.blocks import Block, Board, Figures, Remarks, Section, estimated
from arena.present.numbers import ALIGNED, COUNT, FIGURE, P_VALUE, PERCENT, Number, counted, listed
from arena.present.table import INTERVAL, ORDERS, Column, Table, TableRow, crossed, flat, plain
from arena.ratings.results import UNITS
from retrieval_eval.stats.bootstrap import FEW_QUERIES, Clusters, units_of

if TYPE_CHECKING:
    from retrieval_eval.data.runs import Run
    from retrieval_eval.data.trec import FaultyLine, Note, Qrels
    from retrieval_eval.scores.metrics import Metrics
    from retrieval_eval.scores.run_comparison import Pool, QrelsScores, RankingAgreement
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
"""Table columns of agreement coefficients; the keys are fields of ``LabelAgreement``."""
_BINARISED: Final = (
    Column("qrels", "Labels"),
    Column("threshold", "Relevant", ALIGNED),
    Column("both", "Both", COUNT, "Documents that both call relevant."),
    Column("first_only", "First only", COUNT),
    Column("second_only", "Second only", COUNT),
    Column("neither", "Neither", COUNT),
    Column("kappa", "Kappa", FIGURE, interval=INTERVAL),
)


HEAD_WEIGHTED: Final = {"tau_ap": "tau_AP", "tau_gap": "tau_GAP", "tau_at_10": "Tau@10"}
"""Names of the correlations in ``HeadWeighted``."""


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
    """Confusion matrix of two raters, the first in rows; without ``names`` of the labels their numbers are shown."""
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
    """Labels outside the range of the reference's labels (and 0), each with its number of documents."""
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
    """Agreement of the first set of labels in ``qrels`` with each other set, by the other set's name."""

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


_LEVEL: Final = 0.05
_DECIMALS: Final = 12
_DIFFERENCES: Final = (
    Column("first", "Run"),
    Column("second", "Against"),
    Column("difference", "Difference", Number(3, signed=True), "Mean difference over queries.", INTERVAL),
    Column("outcomes", "W/T/L", ALIGNED, "Queries on which the run scores higher, the same, lower."),
    Column("p_t_holm", "p (t)", P_VALUE, "Paired t test, corrected for all pairs (Holm)."),
    Column("p_permutation_holm", "p (flips)", P_VALUE, "Sign-flip test, corrected for all pairs (Holm)."),
)
_RANKINGS: Final = (
    Column("qrels", "Labels"),
    Column("measure", "Measure"),
    Column("kendall_tau", "Kendall's tau", FIGURE, interval=INTERVAL),
    Column("spearman", "Spearman's rho", FIGURE, interval=INTERVAL),
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
"""Explanation of each measure by its name in ir-measures; ``least`` stands for the lowest relevant label."""


class RunMetrics(Board, frozen=True):
    """Scores of runs by each set of labels; with ``per_query`` also the scores of each query."""

    scores: Mapping[str, QrelsScores]
    qrels: Mapping[str, Qrels]
    runs: Mapping[str, Run]
    settings: Mapping[str, Any]
    per_query: bool = False
    clusters: Clusters = field(default_factory=dict)

    def sections(self) -> list[Section]:
        order = self._best_first()
        blocks: list[Block] = [self._scores(order)]
        if self.per_query:
            blocks.append(self._by_query())
        blocks += self._differences(order)
        if any(self._rankings.values()):
            blocks.append(rankings(f"Runs ranked as by {next(iter(self.scores))}?", self._rankings))
        return [Section("scores", "Scores", "", [*blocks, self.notes()])]

    def tables(self) -> list[Table]:
        """First a table of scores for programs (of each query if ``per_query``), then the tables for people."""
        records = self._by_query() if self.per_query else self._scores(self._reference.metrics.runs)
        return [records, *Board.tables(self)]

    def notes(self) -> Remarks:
        sentences: list[str] = []
        reference = next(iter(self.scores))
        for name, by_labels in self.scores.items():
            labels = self.qrels[name]
            topics = by_labels.metrics.topics
            units = int(units_of(topics, self.clusters).max(initial=-1)) + 1
            clusters_phrase = (
                f" in {counted(units, *UNITS['conversation'])}, which intervals are over" if self.clusters else ""
            )
            labelled = len(topics) - by_labels.metrics.unlabelled
            sentences.append(
                f"{name}: {counted(labelled, 'query', 'queries')}{clusters_phrase}, {counted(len(labels), 'label')}"
            )
            sentences += [
                *_remarks_on_coverage(name, by_labels.metrics, units),
                *remark_on_scale(name, labels, self.qrels[reference], reference),
                *remarks_on(name, labels.notes, labels.faulty),
            ]
        for run in self.runs.values():
            sentences += remarks_on(run.name, map(_with_ties_explained, run.notes), run.faulty)
        return Remarks(sentences)

    def json(self) -> Any:
        """Scores as JSON: ``runs`` and ``judged`` by the first set of labels, ``qrels`` by every set of labels."""
        by_qrels = {
            name: _qrels_json(scores, self.per_query) | as_read(self.qrels[name], self.qrels[next(iter(self.scores))])
            for name, scores in self.scores.items()
        }
        reference, first = next(iter(by_qrels.items()))
        shape = {
            "runs": first["runs"],
            "judged": first["judged"],
            "reference": reference,
            "qrels": by_qrels,
            "rankings": self._rankings,
            "notes": {
                run: [note.text for note in run_file.notes] for run, run_file in self.runs.items() if run_file.notes
            },
            "settings": self.settings,
        }
        return plain(shape, _DECIMALS)

    @property
    def _reference(self) -> QrelsScores:
        return next(iter(self.scores.values()))

    @property
    def _rankings(self) -> dict[str, Mapping[str, RankingAgreement]]:
        return {name: scores.rankings for name, scores in list(self.scores.items())[1:]}

    def _best_first(self) -> list[str]:
        metrics = self._reference.metrics
        first = {run: values[metrics.measures[0]].value for run, values in metrics.estimates.items()}
        return sorted(first, key=lambda run: (first[run] is None, -(first[run] or 0), run))

    def _scores(self, runs: Sequence[str]) -> Table:
        metrics = self._reference.metrics
        judged = list(metrics.coverage[metrics.runs[0]].judged)
        shown = (*metrics.measures, *(name for name in judged if name not in metrics.measures))
        programs = dict.fromkeys((*judged, *metrics.measures))
        columns = [
            Column("qrels", "Labels" if len(self.scores) > 1 else ""),
            Column("run", "Run"),
            *(replace(column, programs=False) for column in measures(shown)),
            *(Column(name, "") for name in (*programs, "topics", "missing", "unlabelled", "missing_labels")),
        ]
        if any(
            coverage.missing_labels for scores in self.scores.values() for coverage in scores.metrics.coverage.values()
        ):
            meaning = "Missing labels of its documents; a query that lacks one among the first documents is in no mean."
            columns.insert(2, Column("lost", "Missing labels", COUNT, meaning, programs=False))
        rows = []
        for name, scores in self.scores.items():
            for run in runs:
                coverage = scores.metrics.coverage[run]
                counts = {"missing": len(coverage.missing), "unlabelled": len(coverage.unlabelled)}
                counts |= {"missing_labels": coverage.missing_labels, "lost": coverage.missing_labels}
                row = {"qrels": name, "run": run, **coverage.judged, **flat(scores.metrics.estimates[run])}
                topics = len(scores.metrics.topics) - scores.metrics.unlabelled
                rows.append(plain({**row, "topics": topics, **counts}, _DECIMALS))
        return Table("scores", "", columns, rows)

    def _by_query(self) -> Table:
        measure_columns = ((name, name, FIGURE) for name in self._reference.metrics.measures)
        columns = [Column("qrels", "Labels"), Column("run", "Run"), Column("qid", "Query")]
        rows = [
            {"qrels": name, "run": run, "qid": query_id, **plain(values, _DECIMALS)}
            | {"missing": int(query_id in scores.metrics.coverage[run].missing)}
            for name, scores in self.scores.items()
            for run, run_values in _per_query(scores.metrics).items()
            for query_id, values in run_values.items()
        ]
        columns += [*(Column(*column) for column in measure_columns), Column("missing", "")]
        return Table("scores-by-query", "Scores by query", columns, rows)

    def _differences(self, order: Sequence[str]) -> Iterator[Table]:
        """Table of each run's difference in the first measure from the baseline, or else from the next best run."""
        main = self._reference.metrics.measures[0]
        pairs = self._reference.comparisons[main]
        by_runs = {
            (pair.first, pair.second): pair for comparison in pairs for pair in (comparison, comparison.turned())
        }
        if not by_runs:
            return
        baseline = self.settings["baseline"]
        wanted = pairwise(order) if baseline is None else [(run, baseline) for run in order if run != baseline]
        rows = [
            {**asdict(pair), "difference": pair.difference, "outcomes": f"{pair.wins}/{pair.ties}/{pair.losses}"}
            for pair in (by_runs[names] for names in wanted)
        ]
        direction = "of neighbours" if baseline is None else "to the baseline"
        note = f"p-values are corrected for {counted(len(pairs), 'pair')}; --format json has all, by each measure."
        labels_phrase = f" and {next(iter(self.scores))}" if len(self.scores) > 1 else ""
        yield Table("differences", f"Differences {direction} by {main}{labels_phrase}", _DIFFERENCES, rows, [note])

    def for_paper(self, digits: int) -> Table:
        """Table for a paper: scores by the first set of labels; * marks a significant difference from the baseline."""
        metrics, baseline = self._reference.metrics, self.settings["baseline"]
        form, rows = Number(digits), []
        for run in self._best_first():
            row: TableRow = {"run": run}
            for measure in metrics.measures:
                pairs = self._reference.comparisons[measure]
                other = next((pair for pair in pairs if {pair.first, pair.second} == {run, baseline}), None)
                significant = other is not None and other.p_permutation_holm < _LEVEL
                row[measure] = f"{form.write(metrics.estimates[run][measure].value)}{'*' if significant else ''}"
            rows.append(row)
        columns = [Column("run", "Run"), *(Column(measure, measure, ALIGNED) for measure in metrics.measures)]
        counted_for = counted(max(map(len, self._reference.comparisons.values()), default=0), "pair")
        notes = [f"Mean scores by {next(iter(self.scores))}."]
        if baseline is not None:
            notes.append(
                f"* differs from {baseline} (sign-flip test, p below {_LEVEL:g}, corrected for {counted_for} by Holm)."
            )
        return Table("scores", "", columns, rows, notes)


def rankings(
    title: str,
    agreements: Mapping[str, Mapping[str, RankingAgreement]],
    notes: Sequence[str] = (),
    *,
    several: bool = True,
) -> Table:
    """Table of rank correlations by set of labels and measure; without ``several`` the column of labels is left out."""
    rows = [
        {"qrels": name, **flat(agreement), "swapped": len(agreement.swapped)}
        for name, by_measure in agreements.items()
        for agreement in by_measure.values()
    ]
    order_note = [ORDERS] if any(row["kendall_tau_low"] is not None for row in rows) else []
    return Table("rankings", title, _RANKINGS if several else _RANKINGS[1:], rows, [*notes, *order_note])


def measures(names: Iterable[str]) -> Iterator[Column]:
    """A table column for each measure; only the first shows an interval."""
    for position, name in enumerate(names):
        yield Column(name, name, FIGURE, _meaning(name), interval="" if position else INTERVAL)


def _meaning(measure: str) -> str:
    """Explanation of a measure named as in ir-measures, such as ``RR(rel=2)@5``; empty for less common measures."""
    kind = measure.partition("@")[0].partition("(")[0]
    template = _MEASURES.get(kind, "")
    return template.format(least=threshold[1] if (threshold := re.search(r"rel=(\d+)", measure)) else 1)


def _remarks_on_coverage(name: str, metrics: Metrics, units: int) -> Iterator[str]:
    if units < FEW_QUERIES:
        units_name = UNITS["query" if units == len(metrics.topics) else "conversation"][1]
        yield f"{name}: fewer than {FEW_QUERIES} {units_name}, so intervals are rough"
    if metrics.without_relevant:
        yield f"{name}: {_queries(metrics.without_relevant)} without a label above 0, where every run scores 0"
    for run, coverage in metrics.coverage.items():
        if coverage.missing:
            yield f"{run}: lacks {_queries(coverage.missing)} of {name}, which count as 0"
        if coverage.unknown:
            measure, unknown = max(coverage.unknown.items(), key=lambda entry: len(entry[1]))
            yield (
                f"{run}: {name} lacks {counted(coverage.missing_labels, 'label')} of its documents; {measure} is not "
                f"known on {_queries(unknown)}, left out"
            )
        if coverage.unlabelled:
            yield f"{run}: {_queries(coverage.unlabelled)} without labels in {name}, left out"


def _queries(query_ids: Sequence[str]) -> str:
    return f"{counted(len(query_ids), 'query', 'queries')} ({listed(query_ids, MOST_NAMED)})"


def _with_ties_explained(note: Note) -> Note:
    """Add to the note on tied documents how each measure breaks ties; other notes are returned unchanged."""
    if note.kind != "ties":
        return note
    text = f"{note.count:,} documents have the score of another one of their query; of these trec_eval's measures take "
    return replace(note, text=text + "the higher doc_id first, reciprocal rank at k and Judged@k the lower")


def _per_query(metrics: Metrics) -> dict[str, dict[str, TableRow]]:
    values = [scores.values.tolist() for scores in metrics.scores.values()]
    return {
        run: {
            query_id: dict(zip(metrics.measures, of_query, strict=True))
            for query_id, *of_query in zip(metrics.topics, *(of_measure[row] for of_measure in values), strict=True)
        }
        for row, run in enumerate(metrics.runs)
    }


def _qrels_json(scores: QrelsScores, per_query: bool) -> TableRow:
    metrics, coverage = scores.metrics, scores.metrics.coverage
    shape: TableRow = {
        "topics": len(metrics.topics) - metrics.unlabelled,
        "without_relevant": metrics.without_relevant,
        "runs": {
            run: {name: estimate.value for name, estimate in estimates.items()}
            for run, estimates in metrics.estimates.items()
        },
        "intervals": {
            run: {name: [estimate.low, estimate.high] for name, estimate in estimates.items()}
            for run, estimates in metrics.estimates.items()
        },
        **{
            part: {run: getattr(coverage[run], part) for run in coverage}
            for part in ("judged", "missing", "unlabelled", "missing_labels", "unknown")
        },
        "comparisons": scores.comparisons,
    }
    return shape | ({"per_query": _per_query(metrics)} if per_query else {})


_POOLED_RUNS: Final = (
    Column("run", "Run"),
    Column("queries", "Queries", COUNT, "On which it retrieved anything."),
    Column("documents", "Documents", COUNT, "Among its first ones."),
    Column("alone", "Only in this run", COUNT),
    Column("labelled", "Labelled", COUNT),
)
_POOLED_QUERIES: Final = (
    Column("qid", "Query"),
    Column("pairs", "Documents", COUNT),
    Column("labelled", "Labelled", COUNT),
    Column("unlabelled", "Without a label", COUNT),
)


class PoolBoard(Board, frozen=True):
    pooled: Pool
    runs: Sequence[Run]
    labels: Qrels | None = None

    def sections(self) -> list[Section]:
        shares = [{"run": name, **flat(share)} for name, share in self.pooled.shares(self.labels).items()]
        queries = self._queries()
        title = f"Pool of depth {self.pooled.depth}: {len(self.pooled)} documents for "
        title += counted(len(queries.rows), "query", "queries")
        if self.labels is not None:
            title += f", {sum(row['unlabelled'] for row in queries.rows)} of them without a label"
        return [Section("pool", "Pool", "", [Table("runs", title, _POOLED_RUNS, shares), queries])]

    def tables(self) -> list[Table]:
        return [self._queries()]

    def notes(self) -> Remarks:
        sentences = [
            line for source in self._sources() for line in remarks_on(source.name, source.notes, source.faulty)
        ]
        labelled = self.pooled.queries if self.labels is None else self.labels.labels
        if unlabelled := [query_id for query_id in self.pooled.queries if query_id not in labelled]:
            sentences.append(f"queries of the pool without any label: {len(unlabelled)}, such as {unlabelled[0]!r}")
        return Remarks(sentences)

    def json(self) -> Any:
        shape = {
            "depth": self.pooled.depth,
            "pairs": len(self.pooled),
            "unlabelled": None if self.labels is None else sum(1 for _ in self.pooled.unlabelled(self.labels)),
            "runs": self.pooled.shares(self.labels),
            "queries": {row["qid"]: {key: row[key] for key in row if key != "qid"} for row in self._queries().rows},
            "notes": {source.name: source.notes for source in self._sources()},
            "faulty": {source.name: source.faulty for source in self._sources()},
        }
        return plain(shape)

    def _sources(self) -> list[Run | Qrels]:
        return [*self.runs, *([self.labels] if self.labels is not None else [])]

    def _queries(self) -> Table:
        rows = []
        for query_id, query in self.pooled.queries.items():
            row: dict[str, Any] = {"qid": query_id, "pairs": len(query.doc_ids)}
            if self.labels is not None:
                labels = self.labels.labels.get(query_id, {})
                row["labelled"] = sum(doc_id in labels for doc_id in query.doc_ids)
                row["unlabelled"] = row["pairs"] - row["labelled"]
            rows.append(row)
        return Table("queries", "", _POOLED_QUERIES if self.labels is not None else _POOLED_QUERIES[:2], rows)
