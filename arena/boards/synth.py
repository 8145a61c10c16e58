"""The report on synthetic queries: how many each model wrote and why some were dropped, lengths, likeness, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from arena.config.synth import SynthSection
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, counted, listed
from arena.present.table import Column, Table, plain
from arena.run.queries import SynthReport
from arena.stages.queries.candidates import REASONS
from arena.stages.queries.own_files import WRITTEN

_SOURCES: Final = 5
"""Documents that are named; the others are counted."""
_SPREADS: Final[Mapping[str, str]] = {
    "lengths": "Words of the queries",
    "example_lengths": "Words of the experts' queries",
    "similarity": "Nearest expert query of the queries",
    "example_similarity": "Nearest expert query of the experts' own",
}


class SynthBoard(Board, frozen=True):
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
        blocks: list[Block] = [*before, self._models(), self._spreads(), Remarks([*self._lines()])]
        return [Section("synth", "Synthetic queries", "", blocks)]

    def json(self) -> Any:
        """All but the calls, which a run's summary has."""
        own = self.report
        short = {model: {"kept": kept, "quota": quota} for model, (kept, quota) in own.short.items()}
        shape = {name: value for name, value in asdict(own).items() if name != "summary"}
        return plain({**shape, "short": short, "complete": own.complete})

    def _models(self) -> Table:
        own = self.report
        reasons = {reason: reason.replace("_", " ") for reason in REASONS if reason in own.dropped}
        columns = [
            Column("model", "Model"),
            Column("written", "Written", COUNT),
            *(Column(reason, words, COUNT) for reason, words in reasons.items()),
            Column("kept", "Kept", COUNT),
            Column("quota", "Quota", COUNT),
        ]
        rows = [
            {"model": model, "written": written, "kept": own.kept.get(model, 0), "quota": own.wanted.get(model)}
            | {reason: own.dropped[reason].get(model, 0) for reason in reasons}
            for model, written in sorted(own.generated.items())
        ]
        return Table("models", "", columns, rows, [f"{words}: {REASONS[reason]}" for reason, words in reasons.items()])

    def _spreads(self) -> Table:
        spreads = {words: getattr(self.report, name) for name, words in _SPREADS.items()}
        rows = [{"what": words, **plain(spread)} for words, spread in spreads.items() if spread is not None]
        figures = [Column(name, name.capitalize(), FIGURE) for name in ("mean", "least", "median", "greatest")]
        notes = ["Nearest: the Jaccard index of word stems."] if self.report.similarity is not None else []
        return Table("spreads", "", [Column("what", "Queries in figures"), *figures], rows, notes)

    def _lines(self) -> Iterator[str]:
        own = self.report
        if own.by_source:
            most = sorted(own.by_source.items(), key=lambda entry: (-entry[1], entry[0]))
            sources = listed([f"{source or 'unknown'} {number}" for source, number in most], _SOURCES)
            yield f"from {counted(len(most), 'document')}: {sources}"
        if not any(line.startswith(f"{self.section.out}: ") for line in own.left_alone):
            yield f"{counted(sum(own.kept.values()), 'query', 'queries')} written to {self.section.out}"
        yield from own.left_alone
        if own.review == WRITTEN:
            yield f"{self.section.review}: {own.review}"
