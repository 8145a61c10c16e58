"""The demo's passages: paragraphs of Markdown pages, named without the pages' ending."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from judges.errors import DataError
from judges.types import Document
from retrieval_eval.documents.markdown import read_markdown
from retrieval_eval.documents.passages import PassagesSection, passages_of
from retrieval_eval.documents.types import SourceDocument


def read_folder(folder: Path, *, exclude: Collection[str] = ()) -> list[Document]:
    """The passages of all Markdown files below a folder, in the order of their paths.

    Args:
        folder: where to look, at any depth.
        exclude: file names to leave out, such as an index that only repeats titles.

    Raises:
        DataError: there is no passage, or a file is not UTF-8 text.
    """
    paths = sorted(
        (path for path in folder.rglob("*.md") if path.name not in exclude),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    passages = [passage for path in paths for passage in _file_passages(path, folder)]
    if not passages:
        raise DataError(folder, "holds no Markdown file with text; name a folder of .md files")
    return passages


def _file_passages(path: Path, folder: Path) -> list[Document]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, f"is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return markdown_passages(text, path.relative_to(folder).with_suffix("").as_posix())


def markdown_passages(text: str, source: str) -> list[Document]:
    """One passage per paragraph, list, table or code block, each with its title; ``source`` names the page."""
    read = read_markdown(text)
    document = SourceDocument(source, read.title or source, read.parts)
    passages = passages_of(document, PassagesSection(by="paragraph"))
    return [Document(passage.doc_id, passage.text, {"title": passage.metadata["title"]}) for passage in passages]
