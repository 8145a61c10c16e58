"""``documents``: read files of many formats and write a corpus of passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec.structs import asdict
from pydantic import ValidationError

from arena.cli.console import INCOMPLETE, errors, say, tell
from arena.cli.options import JsonForm, Set, read_set
from arena.data.corpus import CorpusReading, read_passages
from arena.present.numbers import counted, listed
from judges.errors import InputError
from judges.sections import describe
from judges.types import Document
from retrieval_eval.data.rows import Cell
from retrieval_eval.data.tables import write_rows
from retrieval_eval.documents.passages import PassagesSection
from retrieval_eval.documents.types import Limits

if TYPE_CHECKING:
    from arena.run.queries import SynthReport

_SHOWN = 10
"""Maximum number of near-duplicates, or of files with the same note, in the text output; JSON lists all of them."""
_COLUMNS = ("did", "title", "source", "page", "document")


def documents(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="folders and files: PDF, HTML, Markdown, DOCX, text")
    ],
    by: Annotated[
        Literal["paragraph", "tokens", "sentences", "pages"], typer.Option(help="how to cut passages")
    ] = "paragraph",
    size: Annotated[
        int | None,
        typer.Option(
            min=1, help="size limit of a passage: words of a paragraph (400), tokens (256, pages 2000), sentences (10)"
        ),
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(min=0, help="tokens (0) or sentences (5) shared with the previous passage")
    ] = None,
    near_duplicates: Annotated[
        float, typer.Option(min=0, max=1, help="leave out passages this similar to an earlier one; 0 keeps all")
    ] = 0.8,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the corpus, a table: did, title, source, page, document")
    ] = None,
    set_entries: Set = None,
    form: JsonForm = "table",
) -> None:
    """Cut documents into passages for retrieval.

    Writes a corpus that 'data.corpus' reads. --set: megabytes=100, pages=5000 and seconds=120 are limits; a file above
    one of them is skipped. Without --out it only reports what can be read. Exit status 3: a file was skipped or read in
    part; the output says why.
    """
    options = {"size": size, "overlap": overlap, "near_duplicates": near_duplicates or None}
    passage_settings = _section(PassagesSection, {"by": by} | options)
    limits = read_set(Limits, set_entries)
    reading = CorpusReading()
    rows = _rows(read_passages(paths, passage_settings, limits, reading))
    if out is not None:
        write_rows(out, _COLUMNS, rows)
    else:
        for _ in rows:
            pass
    tell(_record(reading), _lines(reading, out), form)
    if form != "json":
        print_unread(reading)
    if reading.skipped:
        raise typer.Exit(INCOMPLETE)


def _section(kind: Any, values: Mapping[str, Any]) -> Any:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InputError(describe(error)) from error


def _rows(passages: Iterator[Document]) -> Iterator[dict[str, Cell]]:
    for passage in passages:
        yield {"did": passage.doc_id, "document": passage.text, **passage.metadata}


def _record(reading: CorpusReading) -> dict[str, Any]:
    return {
        "documents": reading.documents,
        "passages": reading.passages,
        "near_duplicates": [asdict(twin) for twin in reading.twins],
        "skipped": [asdict(each) for each in reading.skipped],
        "notes": [{"source": each.source, "reason": each.reason} for each in reading.notes],
        "other_files": dict(reading.other_files),
    }


def _lines(reading: CorpusReading, out: Path | None) -> Iterator[str]:
    where = f" written to {out}" if out is not None else ""
    yield f"{counted(reading.documents, 'document')}, {counted(reading.passages, 'passage')}{where}"
    if reading.twins:
        yield f"{counted(len(reading.twins), 'passage')} left out, nearly the same as an earlier one:"
        yield from (f"  {twin.ident} of {twin.kept} ({twin.similarity:.2f})" for twin in reading.twins[:_SHOWN])
    if len(reading.twins) > _SHOWN:
        yield "  ... (--format json lists all)"


def print_unread(reading: CorpusReading | SynthReport) -> None:
    """Print on standard error a line for each file that was skipped or read in part, and a line per distinct note."""
    if reading.other_files:
        counts = ", ".join(f"{number} {ending}" for ending, number in reading.other_files.items())
        say(f"files of other formats, not read: {counts}", errors)
    sources_by_reason: dict[str, list[str]] = {}
    for note in reading.notes:
        sources_by_reason.setdefault(note.reason, []).append(note.source)
    for reason, sources in sources_by_reason.items():
        say(f"note: {listed(sources, _SHOWN)}: {reason}", errors)
    for each in reading.skipped:
        say(f"{each.outcome}: {each.source}: {each.reason}", errors)
