"""Tables about synthetic queries: numbers written and dropped by model, lengths, similarity, and source documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from arena.config.schema import SynthSection
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, FIGURE, counted, listed
from arena.present.table import Column, Table, plain
from arena.run.queries import SynthReport
from arena.stages.queries import REASONS, WRITTEN

_SOURCES: Final = 5
_SPREADS: Final[Mapping[str, str]] = {
    "lengths": "Words of the queries",
    "example_lengths": "Words of the experts' queries",
    "similarity": "Nearest expert query of the queries",
    "example_similarity": "Nearest expert query of the experts' own",
}


class SynthBoard(Board, frozen=True):
    report: SynthReport
    section: SynthSection

    def sections(self) -> Sequence[Section]:
        report = self.report
        input_line = (
            f"{counted(report.documents, 'document')}, {counted(report.passages, 'passage')}, "
            f"{report.sampled} asked about; {len(report.twins)} left out as near-duplicates"
        )
        opening = [Remarks([input_line])] if report.documents else []
        blocks: list[Block] = [*opening, self._models(), self._spreads(), Remarks([*self._lines()])]
        return [Section("synth", "Synthetic queries", "", blocks)]

    def json(self) -> Any:
        """The report as JSON. It leaves out the summary of calls, which the command prints separately."""
        report = self.report
        short = {model: {"kept": kept, "quota": quota} for model, (kept, quota) in report.short.items()}
        shape = {name: value for name, value in asdict(report).items() if name != "summary"}
        return plain({**shape, "short": short, "complete": report.complete})

    def _models(self) -> Table:
        report = self.report
        reasons = {reason: reason.replace("_", " ") for reason in REASONS if reason in report.dropped}
        columns = [
            Column("model", "Model"),
            Column("written", "Written", COUNT),
            *(Column(reason, words, COUNT) for reason, words in reasons.items()),
            Column("kept", "Kept", COUNT),
            Column("quota", "Quota", COUNT),
        ]
        rows = [
            {"model": model, "written": written, "kept": report.kept.get(model, 0), "quota": report.wanted.get(model)}
            | {reason: report.dropped[reason].get(model, 0) for reason in reasons}
            for model, written in sorted(report.generated.items())
        ]
        return Table("models", "", columns, rows, [f"{words}: {REASONS[reason]}" for reason, words in reasons.items()])

    def _spreads(self) -> Table:
        spreads = {words: getattr(self.report, name) for name, words in _SPREADS.items()}
        rows = [{"what": words, **plain(spread)} for words, spread in spreads.items() if spread is not None]
        figures = [Column(name, name.capitalize(), FIGURE) for name in ("mean", "least", "median", "greatest")]
        notes = ["Nearest: the Jaccard index of word stems."] if self.report.similarity is not None else []
        return Table("spreads", "", [Column("what", "Queries in figures"), *figures], rows, notes)

    def _lines(self) -> Iterator[str]:
        report = self.report
        if report.by_source:
            by_count = sorted(report.by_source.items(), key=lambda entry: (-entry[1], entry[0]))
            sources = listed([f"{source or 'unknown'} {number}" for source, number in by_count], _SOURCES)
            yield f"from {counted(len(by_count), 'document')}: {sources}"
        if not any(line.startswith(f"{self.section.out}: ") for line in report.left_alone):
            yield f"{counted(sum(report.kept.values()), 'query', 'queries')} written to {self.section.out}"
        yield from report.left_alone
        if report.review == WRITTEN:
            yield f"{self.section.review}: {report.review}"
