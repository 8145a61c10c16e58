"""Scores of runs for people, with what a reader must know below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rich.console import Console

from arena.cli.console import errors, output, print_json
from arena.cli.figures import FEW_QUERIES, counted, interval, print_read, say, value
from arena.cli.markup import print_csv
from arena.cli.metrics_shapes import score_rows, scores_json
from arena.cli.tables import print_table
from retrieval_eval.run_scores import QrelsScores, RunScores
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.significance import Comparison
from retrieval_eval.trec import Note, Qrels, Run

_MOST_ALIKE = 3
"""Queries that are named."""


def print_scores(
    scores: RunScores, qrels: Mapping[str, Qrels], runs: Mapping[str, Run], form: str, *, per_query: bool
) -> None:
    """Write scores to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(scores_json(scores, qrels, runs, per_query=per_query))
    elif form == "csv":
        print_csv(score_rows(scores, per_query=per_query))
        _print_notes(scores, qrels, runs, errors)
    else:
        order = _best_first(scores)
        _print_runs(scores, order)
        if per_query:
            _print_queries(scores, order)
        _print_differences(scores, order)
        _print_rankings(scores)
        output.print()
        _print_notes(scores, qrels, runs, output)


def _print_notes(scores: RunScores, qrels: Mapping[str, Qrels], runs: Mapping[str, Run], console: Console) -> None:
    for name, own in scores.by_qrels.items():
        say(f"{name}: {len(own.metrics.topics):,} queries, {len(qrels[name]):,} labels", console)
        for line in _coverage_lines(name, own):
            say(line, console)
        print_read(name, qrels[name].notes, qrels[name].faulty, console)
    for run in runs.values():
        print_read(run.name, [_said_of_ties(note) for note in run.notes], run.faulty, console)


def _best_first(scores: RunScores) -> list[str]:
    """Runs by the first measure and the first labels."""
    metrics = scores.by_qrels[scores.reference].metrics
    main = metrics.measures[0]
    return sorted(metrics.runs, key=lambda run: (-metrics.value(run, main), run))


def _print_runs(scores: RunScores, order: Sequence[str]) -> None:
    several = len(scores.by_qrels) > 1
    main, *others = scores.by_qrels[scores.reference].metrics.measures
    rows = []
    for name, own in scores.by_qrels.items():
        for run in order:
            cells = [f"{own.metrics.value(run, main):.4f}", interval(own.intervals[run][main], 3)]
            cells += [f"{own.metrics.value(run, measure):.4f}" for measure in others]
            cells += [f"{share:.4f}" for _, share in _judged_besides(own, run)]
            rows.append([*([name] if several else []), run, *cells])
    judged = [at for at, _ in _judged_besides(scores.by_qrels[scores.reference], order[0])]
    headings = [_stacked(heading) for heading in (main, "95 %\ninterval", *others, *judged)]
    print_table([*(["qrels"] if several else []), "run"], headings, rows)


def _judged_besides(own: QrelsScores, run: str) -> Iterator[tuple[str, float]]:
    """Judged@k that is shown although nobody asked for it."""
    for at, share in own.metrics.coverage[run].judged.items():
        if at not in own.metrics.measures:
            yield at, share


def _print_queries(scores: RunScores, order: Sequence[str]) -> None:
    rows = []
    for name, own in scores.by_qrels.items():
        metrics = own.metrics
        for at, query_id in enumerate(metrics.topics):
            for run in order:
                values = metrics.values[metrics.runs.index(run), :, at]
                rows.append([name, query_id, run, *(f"{one:.4f}" for one in values)])
    output.print()
    measures = scores.by_qrels[scores.reference].metrics.measures
    print_table(["qrels", "query", "run"], [_stacked(measure) for measure in measures], rows)


def _print_differences(scores: RunScores, order: Sequence[str]) -> None:
    """By the first measure: every run against the baseline, or neighbours in the order."""
    own = scores.by_qrels[scores.reference]
    main = own.metrics.measures[0]
    found = {(pair.first, pair.second): pair for pair in own.comparisons[main]}
    if not found:
        return
    baseline = scores.settings.baseline
    wanted = pairwise(order) if baseline is None else [(run, baseline) for run in order if run != baseline]
    rows = []
    for run, other in wanted:
        pair = found[run, other] if (run, other) in found else found[other, run].turned()
        rows.append([run, other, *_difference(pair)])
    what = "of neighbours" if baseline is None else "to the baseline"
    pairs = counted(len(found), "pair", "pairs")
    say(f"\ndifferences {what} by {main}; p-values corrected for {pairs}; --json has all, by each measure")
    print_table(["run", "against"], ["difference", "95 %\ninterval", "W/T/L", "p\n(t)", "p\n(flips)"], rows)


def _difference(pair: Comparison) -> list[str]:
    return [
        f"{pair.difference.value:+.4f}",
        interval(pair.difference, 3),
        f"{pair.wins}/{pair.ties}/{pair.losses}",
        "-" if pair.p_t_holm is None else _p(pair.p_t_holm),
        _p(pair.p_permutation_holm),
    ]


def _print_rankings(scores: RunScores) -> None:
    rows = []
    for other, by_measure in scores.rankings.items():
        for measure, own in by_measure.items():
            coefficients = [_with_interval(one) for one in (own.kendall_tau, own.spearman)]
            rows.append([other, measure, *coefficients, str(len(own.swapped)), str(own.topics)])
    if rows:
        say(f"\nruns ranked as by {scores.reference}?")
        print_table(["qrels", "measure"], ["Kendall\ntau", "Spearman", "swapped\npairs", "queries"], rows)


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
    shown = ", ".join(query_ids[:_MOST_ALIKE]) + (", ..." if len(query_ids) > _MOST_ALIKE else "")
    return f"{counted(len(query_ids), 'query', 'queries')} ({shown})"


def _said_of_ties(note: Note) -> Note:
    """Measures do not all break ties alike, which the note of a run alone cannot know."""
    if note.kind != "ties":
        return note
    text = f"{note.count:,} documents have the score of another one of their query; of these trec_eval's measures take "
    return Note(note.kind, note.count, text + "the higher doc_id first, reciprocal rank at k and Judged@k the lower")


def _stacked(measure: str) -> str:
    """A heading that may break before its parameters."""
    return measure.replace("(", "\n(", 1)


def _with_interval(estimate: Estimate) -> str:
    return value(estimate) if estimate.low is None else f"{value(estimate)} ({interval(estimate)})"


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
