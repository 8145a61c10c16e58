"""The report on synthetic queries: how many each model wrote and why some were dropped, lengths, likeness, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, counted, listed
from arena.present.plain import plain
from arena.present.table import Column, Table
from arena.synth.candidates import REASONS
from arena.synth.report import Spread, SynthReport
from arena.synth.section import SynthSection

_SOURCES: Final = 5
"""Documents that are named; the others are counted."""
_SPREADS: Final[Mapping[str, str]] = {
    "lengths": "words of the queries",
    "example_lengths": "words of the experts' queries",
    "similarity": "nearest expert query (Jaccard index of word stems) of the queries",
    "example_similarity": "nearest expert query (Jaccard index of word stems) of the experts' own",
}


@dataclass(frozen=True, slots=True)
class SynthBoard(Board):
    """A report, and the section of the configuration that asked for it."""

    report: SynthReport
    section: SynthSection

    def sections(self) -> Sequence[Section]:
        """One: what was read, the models, and the queries in figures."""
        own = self.report
        read = (
            f"{counted(own.documents, 'document')}, {counted(own.passages, 'passage')}, {own.sampled} asked about; "
            f"{len(own.twins)} left out as near-duplicates"
        )
        before = [Remarks([read])] if own.documents else []
        return [Section("synth", "Synthetic queries", "", [*before, self._models(), Remarks([*self._lines()])])]

    def json(self) -> Any:
        """All but the calls, which a run's summary has."""
        own = self.report
        shape = {field.name: getattr(own, field.name) for field in fields(own) if field.name != "summary"}
        short = {model: {"kept": kept, "quota": quota} for model, (kept, quota) in own.short.items()}
        return plain({**shape, "short": short, "complete": own.complete})

    def _models(self) -> Table:
        own = self.report
        reasons = [reason for reason in REASONS if reason in own.dropped]
        columns = [Column(reason, reason.replace("_", " "), COUNT, REASONS[reason]) for reason in reasons]
        rows = [
            {
                "model": model,
                "written": written,
                **{reason: own.dropped[reason].get(model, 0) for reason in reasons},
                "kept": own.kept.get(model, 0),
                "quota": own.wanted.get(model),
            }
            for model, written in sorted(own.generated.items())
        ]
        ends = [Column("kept", "Kept", COUNT), Column("quota", "Quota", COUNT)]
        notes = [f"{reason.replace('_', ' ')}: {REASONS[reason]}" for reason in reasons]
        return Table(
            "models", "", [Column("model", "Model"), Column("written", "Written", COUNT), *columns, *ends], rows, notes
        )

    def _lines(self) -> Iterator[str]:
        own = self.report
        for name, words in _SPREADS.items():
            spread: Spread | None = getattr(own, name)
            if spread is not None:
                mean, least, median, greatest = (
                    f"{value:.3g}" for value in (spread.mean, spread.least, spread.median, spread.greatest)
                )
                yield f"{words}: mean {mean}, least {least}, median {median}, greatest {greatest}"
        if own.by_source:
            most = sorted(own.by_source.items(), key=lambda entry: (-entry[1], entry[0]))
            sources = listed([f"{source or 'unknown'} {number}" for source, number in most], _SOURCES)
            yield f"from {counted(len(most), 'document')}: {sources}"
        yield f"{counted(sum(own.kept.values()), 'query', 'queries')} written to {self.section.out}"
        if own.review and self.section.review is not None and self.section.reviewed is None:
            yield f"{self.section.review}: {own.review}"
