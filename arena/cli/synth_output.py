"""The report on synthetic queries, for people and for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from arena.cli.console import errors, output, printable, rounded
from arena.cli.documents import print_unread
from arena.cli.figures import counted
from arena.cli.tables import print_table
from arena.synth.candidates import REASONS
from arena.synth.report import Spread, SynthReport
from arena.synth.section import SynthSection


def report_json(report: SynthReport) -> dict[str, Any]:
    """The report for machines, without the calls, which go to standard error."""
    fields = {name: value for name, value in vars(report).items() if name != "summary"}
    spreads = {name: None if value is None else asdict(value) for name, value in fields.items() if _is_spread(name)}
    lists = {name: [asdict(each) for each in fields[name]] for name in ("skipped", "notes", "twins")}
    short = {model: {"kept": kept, "quota": quota} for model, (kept, quota) in report.short.items()}
    shape: dict[str, Any] = rounded({**fields, **spreads, **lists, "short": short, "complete": report.complete})
    return shape


def _is_spread(name: str) -> bool:
    return name.endswith(("lengths", "similarity"))


def print_report(report: SynthReport, section: SynthSection) -> None:
    """What came of it on standard output; what is missing, a line each, on standard error."""
    if report.documents:
        output.print(
            f"{counted(report.documents, 'document', 'documents')}, {counted(report.passages, 'passage', 'passages')}, "
            f"{report.sampled} asked about; "
            f"{len(report.twins)} left out as near-duplicates"
        )
    _print_models(report)
    for name, spreads in _SPREADS.items():
        for whose, field in spreads.items():
            if (spread := getattr(report, field)) is not None:
                output.print(f"{name} {whose}: {_shown(spread)}")
    if report.by_source:
        most = sorted(report.by_source.items(), key=lambda entry: (-entry[1], entry[0]))
        sources = ", ".join(f"{source or 'unknown'} {number}" for source, number in most[:_SOURCES])
        rest = f" and {len(most) - _SOURCES} more" if len(most) > _SOURCES else ""
        output.print(printable(f"from {counted(len(most), 'document', 'documents')}: {sources}{rest}"))
    output.print(printable(f"{sum(report.kept.values())} queries written to {section.out}"))
    if report.review and section.review is not None and section.reviewed is None:
        output.print(printable(f"{section.review}: {report.review}"))
    print_unread(report)
    if report.undecided:
        errors.print(f"{report.undecided} queries have no decision and were not used")
    for model, (kept, quota) in report.short.items():
        errors.print(printable(f"{model}: {kept} queries of the {quota} of its quota; {_ADVICE}"))


_SOURCES = 5
_ADVICE = "sample more passages, or lower the quota"
_SPREADS = {
    "words": {"of the queries": "lengths", "of the experts' queries": "example_lengths"},
    "nearest expert query (Jaccard index of word stems)": {
        "of the queries": "similarity",
        "of the experts' own": "example_similarity",
    },
}


def _shown(spread: Spread) -> str:
    values = (spread.mean, spread.least, spread.median, spread.greatest)
    return "mean {:.3g}, least {:.3g}, median {:.3g}, greatest {:.3g}".format(*values)


def _print_models(report: SynthReport) -> None:
    reasons = [reason for reason in REASONS if reason in report.dropped]
    rows = []
    for model, generated in sorted(report.generated.items()):
        dropped = [str(report.dropped[reason].get(model, 0)) for reason in reasons]
        quota = [str(report.wanted[model])] if report.wanted else []
        rows.append([model, str(generated), *dropped, str(report.kept.get(model, 0)), *quota])
    quota = ["quota"] if report.wanted else []
    print_table(["model"], ["written", *(reason.replace("_", " ") for reason in reasons), "kept", *quota], rows)
    for reason in reasons:
        output.print(f"- {reason.replace('_', ' ')}: {REASONS[reason]}")
