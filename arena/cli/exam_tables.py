"""The leaderboard of an evaluation by exam for a terminal."""

from __future__ import annotations

from arena.cli.console import output, printable
from arena.cli.tables import print_table
from arena.exam.score import AgentScores, ScoreReport
from arena.exam.study import Study
from retrieval_eval.exam.cover import Mean

UNITS = {"answers": "passages of answers", "documents": "documents"}
"""What an exam grades, in words."""


def print_scores(report: ScoreReport, study: Study, workbench: bool) -> None:
    """The leaderboards at all levels, what they rest on, and the comparison with an official one."""
    usual, k = study.usual_level, report.scores.k
    headings = [f"cover@{k}\n>={level}" for level in report.levels]
    headings += [f"normalised\n>={usual}", f"alpha-nDCG@{k}\n>={usual}", "graded"]
    rows = [
        [
            f"{row.place[usual]:g}",
            row.agent,
            *(_with_error(row.cover[level]) for level in report.levels),
            _with_error(row.normalised[usual]),
            _with_error(row.alpha_ndcg[usual]),
            _graded(row),
        ]
        for row in report.agents
    ]
    print_table(("place", "agent"), headings, rows)
    output.print(f"\ngraded: {UNITS[study.unit]}, the first {k} of each agent and query")
    output.print(f"ordered by cover@{k} at grades >= {usual}; +- is one standard error over queries")
    for line in _basis(report, study, workbench):
        output.print(printable(line))
    if report.official:
        _print_official(report)


def _print_official(report: ScoreReport) -> None:
    output.print("\nagreement with the official leaderboard:")
    rows = [
        [
            name,
            f">={level}",
            _number(found.spearman),
            _number(found.kendall),
            str(found.n),
        ]
        for name in ("cover", "normalised")
        for level, both in report.official.items()
        for found in [both[name]]
    ]
    print_table(("score", "grades"), ("Spearman", "Kendall tau-b", "agents"), rows)
    example = next(iter(report.official.values()))["cover"]
    for label, agents in (("only here", example.only_first), ("only there", example.only_second)):
        if agents:
            output.print(printable(f"{label}: {', '.join(agents)}"))


def _basis(report: ScoreReport, study: Study, workbench: bool) -> list[str]:
    scores = report.scores
    lines = [f"{len(scores.queries)} queries; a query without a response counts 0"]
    if workbench:
        lines = [f"{len(scores.queries)} queries; an agent's mean is over its own (as the workbench counts)"]
        lines.append("the size of the bank: items with a grade (as the workbench counts)")
    elif study.bank is None:
        lines.append("the size of the bank: items with a grade, since no --bank was given")
    else:
        lines.append(f"bank version {study.version}: {sum(map(len, study.bank.active.values()))} items")
    pairs, graded = int(scores.pairs.sum()), int(scores.graded.sum())
    if graded < pairs:
        lines.append(
            f"{pairs - graded} of {pairs} pairs of passage and item have no grade: cover may be higher, "
            "at most as --json says in cover_possible"
        )
    if nobody := int(scores.uncovered_queries[report.levels.index(study.usual_level)]):
        lines.append(f"{nobody} queries of which no passage covers an item at >= {study.usual_level}")
    if scores.empty_queries:
        lines.append(f"{len(scores.empty_queries)} queries without items are left out: {_some(scores.empty_queries)}")
    if study.strange_queries and not workbench:
        lines.append(f"{len(study.strange_queries)} ranked queries are not in the bank: {_some(study.strange_queries)}")
    if study.grids.unknown and not workbench:
        lines.append(f"{study.grids.unknown} grades of items that the bank does not have, or retired, are left out")
    return lines


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _with_error(value: Mean) -> str:
    return f"{value.value:.3f}" if value.error is None else f"{value.value:.3f} +- {value.error:.3f}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _graded(row: AgentScores) -> str:
    return f"{row.graded / row.pairs:.0%}" if row.pairs else "-"
