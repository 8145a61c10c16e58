"""Scores of runs and agreement of labels for people, with what a reader must know below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from arena.cli.console import output, print_json, printable
from arena.cli.markup import print_csv
from arena.cli.metrics_shapes import Row, agreement_json, agreement_rows, coverage, score_rows, scores_json
from arena.cli.tables import print_table
from retrieval_eval.label_agreement import LabelAgreement
from retrieval_eval.resampling import Estimate
from retrieval_eval.run_scores import QrelsScores, RunScores
from retrieval_eval.significance import Comparison
from retrieval_eval.trec import Qrels, Run

_MOST_ALIKE = 3
"""Faulty lines of one file that are printed."""


def print_scores(
    scores: RunScores, qrels: Mapping[str, Qrels], runs: Mapping[str, Run], form: str, *, per_query: bool
) -> None:
    """Write scores to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(scores_json(scores, qrels, runs, per_query=per_query))
    elif form == "csv":
        print_csv(score_rows(scores, per_query=per_query))
    else:
        order = _best_first(scores)
        _print_runs(scores, order)
        if per_query:
            output.print()
            _print_queries(scores, order)
        _print_differences(scores, order)
        _print_rankings(scores)
        output.print()
        for name, own in scores.by_qrels.items():
            _say(f"{name}: {len(own.metrics.topics):,} queries, {len(qrels[name]):,} labels")
            _print_coverage(name, own)
            _print_read(name, qrels[name])
        for run in runs.values():
            for note in run.notes:
                _say(f"{run.name}: {_TIES.format(note.count) if note.kind == 'ties' else note.text}")


_TIES = (
    "{:,} documents have the score of another one of their query; trec_eval's measures take the higher doc_id first, "
    "reciprocal rank with a cutoff and Judged@k the lower"
)


def print_agreement(
    agreements: Mapping[str, LabelAgreement], qrels: Mapping[str, Qrels], settings: Row, form: str
) -> None:
    """Write how labels agree with the first to standard output, as a table, JSON or CSV."""
    if form == "json":
        print_json(agreement_json(agreements, qrels, settings))
        return
    if form == "csv":
        print_csv(agreement_rows(agreements, qrels))
        return
    _print_coefficients(agreements)
    _print_binarised(agreements)
    if len(agreements) == 1:
        _print_confusion(*agreements.values())
    reference = next(iter(qrels))
    _say(f"\nagainst {reference}: {len(qrels[reference]):,} labels; figures are of the pairs that both have")
    for name, one in qrels.items():
        if (own := agreements.get(name)) is not None and own.first_only + own.second_only:
            _say(f"{name}: lacks {own.first_only:,} of {reference}'s pairs, has {own.second_only:,} others")
        _print_read(name, one)


def _best_first(scores: RunScores) -> list[str]:
    """Runs by the first measure and the first labels."""
    metrics = scores.by_qrels[scores.reference].metrics
    first = metrics.measures[0]
    return sorted(metrics.runs, key=lambda run: (-metrics.value(run, first), run))


def _print_runs(scores: RunScores, order: Sequence[str]) -> None:
    several = len(scores.by_qrels) > 1
    rows = []
    for name, own in scores.by_qrels.items():
        for run in order:
            main, *others = own.metrics.measures
            judged = own.metrics.coverage[run].judged
            cells = [f"{own.metrics.value(run, main):.4f}", _interval(own.intervals[run][main], 3)]
            cells += [f"{own.metrics.value(run, measure):.4f}" for measure in others]
            cells += [f"{value:.4f}" for at, value in judged.items() if at not in own.metrics.measures]
            rows.append([*([name] if several else []), run, *cells])
    metrics = scores.by_qrels[scores.reference].metrics
    main, *others = metrics.measures
    judged_only = [at for at in metrics.coverage[order[0]].judged if at not in metrics.measures]
    headings = [_stacked(heading) for heading in (main, "95 %\ninterval", *others, *judged_only)]
    print_table([*(["qrels"] if several else []), "run"], headings, rows)


def _print_queries(scores: RunScores, order: Sequence[str]) -> None:
    rows = []
    for name, own in scores.by_qrels.items():
        metrics = own.metrics
        for at, query_id in enumerate(metrics.topics):
            for run in order:
                values = metrics.values[metrics.runs.index(run), :, at]
                rows.append([name, query_id, run, *(f"{value:.4f}" for value in values)])
    measures = scores.by_qrels[scores.reference].metrics.measures
    print_table(["qrels", "query", "run"], [_stacked(measure) for measure in measures], rows)


def _print_differences(scores: RunScores, order: Sequence[str]) -> None:
    """By the first measure: every run against the baseline, or neighbours in the order."""
    own = scores.by_qrels[scores.reference]
    main = own.metrics.measures[0]
    pairs = {frozenset((pair.first, pair.second)): pair for pair in own.comparisons[main]}
    if not pairs:
        return
    baseline = scores.settings.baseline
    wanted = [(run, baseline) for run in order if run != baseline] if baseline else zip(order, order[1:], strict=False)
    rows = [_difference(run, str(other), pairs[frozenset((run, str(other)))]) for run, other in wanted]
    what = "against the baseline" if baseline else "of neighbours"
    _say(f"\ndifferences {what} by {main}, p-values corrected for {len(pairs)} pairs (--json: all, by each measure)")
    print_table(["run", "against"], ["differ-\nence", "95 %\ninterval", "W/T/L", "p (t)", "p (flips)"], rows)


def _difference(run: str, other: str, pair: Comparison) -> list[str]:
    sign = 1 if pair.first == run else -1
    low, high = (pair.difference.low, pair.difference.high) if sign > 0 else (pair.difference.high, pair.difference.low)
    turned = Estimate(sign * (pair.difference.value or 0.0), low and sign * low, high and sign * high)
    counts = (pair.wins, pair.ties, pair.losses)[::sign]
    return [
        run,
        other,
        f"{turned.value:+.4f}",
        _interval(turned, 3),
        "/".join(str(count) for count in counts),
        "-" if pair.p_t_holm is None else _p(pair.p_t_holm),
        _p(pair.p_permutation_holm),
    ]


def _print_rankings(scores: RunScores) -> None:
    rows = [
        [
            other,
            measure,
            _value(own.kendall_tau),
            _interval(own.kendall_tau),
            _value(own.spearman),
            _interval(own.spearman),
        ]
        + [str(len(own.swapped)), str(own.topics)]
        for other, by_measure in scores.rankings.items()
        for measure, own in by_measure.items()
    ]
    if rows:
        _say(f"\nruns ranked as by {scores.reference}?")
        headings = ["Kendall\ntau", "95 %\ninterval", "Spear-\nman", "95 %\ninterval", "swapped\npairs", "queries"]
        print_table(["qrels", "measure"], headings, rows)


def _print_coverage(name: str, own: QrelsScores) -> None:
    metrics = own.metrics
    if metrics.without_relevant:
        _say(f"{name}: {_queries(metrics.without_relevant)} no label above 0; every run scores 0 there")
    for run in metrics.runs:
        coverage = metrics.coverage[run]
        if coverage.missing:
            _say(f"{run}: lacks {_queries(coverage.missing)[:-5]}, which score 0")
        if coverage.unlabelled:
            _say(f"{run}: {_queries(coverage.unlabelled)} no labels in {name} and are left out")


def _queries(query_ids: Sequence[str]) -> str:
    shown = ", ".join(query_ids[:_MOST_ALIKE]) + (", ..." if len(query_ids) > _MOST_ALIKE else "")
    return f"{len(query_ids):,} queries ({shown}) have" if len(query_ids) > 1 else f"query {shown} has"


def _print_coefficients(agreements: Mapping[str, LabelAgreement]) -> None:
    rows = []
    for name, own in agreements.items():
        share = coverage(own)
        cells = [f"{own.n:,}", "-" if share is None else f"{share:.1%}", _value(own.agreement), _value(own.kappa)]
        cells += [_interval(own.kappa), _value(own.kappa_linear), _value(own.kappa_quadratic)]
        rows.append([name, *cells, _value(own.alpha), _value(own.alpha_ordinal)])
    headings = ["pairs", "cover-\nage", "same\nlabel", "kappa", "95 %\ninterval", "linear", "quad-\nratic"]
    print_table(["labels"], [*headings, "alpha", "alpha\nordinal"], rows)


def _print_binarised(agreements: Mapping[str, LabelAgreement]) -> None:
    rows = [
        [
            name,
            f">= {one.threshold}",
            f"{one.both:,}",
            f"{one.first_only:,}",
            f"{one.second_only:,}",
            f"{one.neither:,}",
        ]
        + [_value(one.kappa), _interval(one.kappa)]
        for name, own in agreements.items()
        for one in own.binarised
    ]
    if rows:
        output.print("\nrelevant or not, from each label on")
        headings = ["both", "first\nonly", "second\nonly", "neither", "kappa", "95 %\ninterval"]
        print_table(["labels", "relevant"], headings, rows)


def _print_confusion(own: LabelAgreement) -> None:
    if own.scale:
        output.print("\nrows: labels of the first; columns: of the second")
        rows = [
            [str(label), *(f"{count:,}" for count in row)] for label, row in zip(own.scale, own.confusion, strict=True)
        ]
        print_table([""], [str(label) for label in own.scale], rows)


def _print_read(name: str, qrels: Qrels) -> None:
    for note in qrels.notes:
        _say(f"{name}: {note.text}")
    if qrels.faulty:
        _say(f"{name}: {len(qrels.faulty):,} faulty lines left out")
        for line in _faulty_lines(qrels):
            _say(f"  {line}")


def _faulty_lines(qrels: Qrels) -> Iterator[str]:
    for fault in qrels.faulty[:_MOST_ALIKE]:
        yield f"line {fault.line}: {fault.problem}" + ("" if fault.value is None else f" ({fault.value!r})")
    if len(qrels.faulty) > _MOST_ALIKE:
        yield f"... and {len(qrels.faulty) - _MOST_ALIKE:,} more (--json: all)"


def _say(text: str) -> None:
    """A line with names in it; a line break in front stays one."""
    output.print(("\n" if text.startswith("\n") else "") + printable(text.lstrip("\n")))


def _stacked(measure: str) -> str:
    """A heading that may break before its cutoff."""
    return measure.replace("(", "\n(", 1) if "(" in measure else measure


def _value(estimate: Estimate) -> str:
    return "-" if estimate.value is None else f"{estimate.value:.2f}"


def _interval(estimate: Estimate, decimals: int = 2) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.{decimals}f} .. {estimate.high:.{decimals}f}"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
