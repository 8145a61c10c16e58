"""Folders and files -> documents, one at a time; what cannot be read is said and passed over.

Files come from anywhere, so they are read in a process of their own, whose memory and time are bounded:
``python -m retrieval_eval.documents.read`` reads a JSON object per line, ``{"path", "kind", "limits"}``, and writes one
for each: ``{"title", "parts", "problems", "notes"}``, or ``{"problems"}`` where nothing could be read.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from judges.errors import DataError, InputError, MissingExtraError
from judges.masking import one_line, storable
from retrieval_eval.documents.types import (
    DocumentPart,
    Extract,
    FileNote,
    Limits,
    SourceDocument,
    UnreadableError,
    amounts,
)

KINDS = {
    ".pdf": "pdf",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".docx": "docx",
    ".txt": "plain",
    ".text": "plain",
}
_LIBRARIES = {"pdf": "pypdf", "html": "lxml", "docx": "docx"}
_HIDDEN = (".", "~$")
"""How names begin of what is no document: settings, version control, locks of word processors."""

_ENVIRONMENT = frozenset(
    {"PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}
)
"""What the process that reads gets of the environment: no keys."""


class File(Struct, frozen=True):
    """A file or a folder.

    Attributes:
        path: where it is.
        source: what its document is called.
        folder: that it was found in; ``None`` where it was named itself.
        unread: why it is not read, whatever its format; of a folder always.
    """

    path: Path
    source: str
    folder: Path | None = None
    unread: FileNote | None = None

    @property
    def kind(self) -> str | None:
        """The format by the name's ending; ``None`` for one that is not read."""
        return None if self.unread is not None else KINDS.get(self.path.suffix.lower())


def read_documents(paths: Sequence[Path], limits: Limits | None = None) -> Iterator[SourceDocument | FileNote]:
    """Read all documents of folders, at any depth and in the order of their paths, and of files.

    Files of other formats are passed over (``files_of`` lists them). Hidden files and folders, and links to folders,
    are not read but named. What is said of a file follows its document. Reading happens in a process of its own, which
    is ended where a file takes too long.

    Raises:
        InputError: a path does not exist, a file that is named is of no known format, or two have one name.
        MissingExtraError: the libraries are not installed.
    """
    limits = limits or Limits()
    files = [file for file in files_of(paths) if file.kind is not None or file.unread is not None]
    for kind, library in _LIBRARIES.items():
        if any(file.kind == kind for file in files) and importlib.util.find_spec(library) is None:
            raise MissingExtraError("documents", f"reading {kind.upper()} files")
    with closing(_Reader(limits)) as reader:
        for file in files:
            yield from reader.read(file) if file.unread is None else (file.unread,)


def files_of(paths: Sequence[Path]) -> list[File]:
    """Every file of folders and every file named, with what its document is called, and folders that are not entered.

    Raises:
        InputError: see ``read_documents``.
    """
    found: dict[str, File] = {}
    unread: list[File] = []
    for path in paths:
        for file in _below(path):
            if file.unread is not None:
                unread.append(file)
                continue
            if file.source in found:
                raise InputError(
                    f"{file.path}: another document is called {file.source!r} too; name one folder above both"
                )
            found[file.source] = file
    return [*found.values(), *unread]


def _below(path: Path) -> Iterator[File]:
    if path.is_dir():
        yield from sorted(_walked(path), key=lambda file: file.source)
        return
    if not path.exists():
        raise DataError(path, "no such file or folder; check its name and folder")
    file = File(path, path.name)
    if file.kind is None:
        raise DataError(path, f"not a document: the name must end in {', '.join(KINDS)}")
    yield file


def _walked(top: Path) -> Iterator[File]:
    """All of a folder, in no order."""
    closed: list[OSError] = []
    for folder, folders, names in os.walk(top, onerror=closed.append):
        for name in (*folders, *names):
            path = Path(folder, name)
            source = path.relative_to(top).as_posix()
            unread = _not_entered(path, name, source)
            if unread is not None or name in names:
                yield File(path, source, top, unread)
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
    for error in closed:
        path = Path(error.filename)
        source = path.relative_to(top).as_posix()
        yield File(path, source, top, FileNote(storable(source), f"cannot be read: {error.strerror}"))


def _not_entered(path: Path, name: str, source: str) -> FileNote | None:
    if name.startswith(_HIDDEN):
        return FileNote(storable(source), "hidden, not read", "note")
    if path.is_symlink() and path.is_dir():
        return FileNote(storable(source), "is a link to a folder; name that folder to have it read")
    return None


class _Remembered:
    """What the files held that were read first, up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._answers: dict[str, bytes] = {}
        self._left = most

    def get(self, key: str) -> bytes | None:
        return self._answers.get(key)

    def keep(self, key: str, answer: bytes) -> None:
        if key not in self._answers and len(answer) <= self._left:
            self._answers[key] = answer
            self._left -= len(answer)


_READ: Final = _Remembered(2**26)
"""One command often reads a folder for queries and again for agents to search."""
_LATE: Final = b"late"


class _Reader:
    """Asks the process that reads, and begins a new one where it had to be ended."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, file: File) -> Iterator[SourceDocument | FileNote]:
        """The document, and what is to be said of it."""
        problem = self._refused(file)
        said: dict[str, Any] = {"problems": [problem]} if problem is not None else self._asked(file)
        if parts := tuple(DocumentPart(heading, page, tuple(texts)) for heading, page, texts in said.get("parts", ())):
            yield SourceDocument(file.source, said["title"] or file.path.stem, parts)
        for problem in said["problems"]:
            yield FileNote(storable(file.source), problem, "partly read" if parts else "skipped")
        for note in said.get("notes", ()):
            yield FileNote(storable(file.source), note, "note")

    def _refused(self, file: File) -> str | None:
        if file.folder is not None and not file.path.resolve().is_relative_to(file.folder.resolve()):
            return "is a link that leads out of the folder"
        if not file.path.is_file():
            return "is not a file"
        if storable(file.source) != file.source:
            return "has a name that is not UTF-8; rename it"
        size = file.path.stat().st_size
        if size == 0:
            return "is empty"
        if size > self._limits.megabytes * 1_000_000:
            return f"has {size // 1_000_000} MB, more than {self._limits.megabytes}"
        return None

    def _asked(self, file: File) -> dict[str, Any]:
        facts = file.path.stat()
        asked = {"path": str(file.path.resolve()), "kind": file.kind, "limits": self._limits.model_dump()}
        key = json.dumps([asked, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns])
        answer = _READ.get(key) or self._answer(asked)
        if answer.endswith(b"\n"):
            _READ.keep(key, answer)
            said: dict[str, Any] = json.loads(answer)
            return said
        if answer:
            return {"problems": [f"took longer than {self._limits.seconds:g} s"]}
        return {"problems": ["brought down the process that read it"]}

    def _answer(self, asked: dict[str, Any]) -> bytes:
        """What the process says of a file, on a line; ``_LATE`` where it took too long, nothing where it ended."""
        process = self._process = self._process or _started()
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(self._limits.seconds, end)
        assert process.stdin is not None
        assert process.stdout is not None
        clock.start()
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # it has ended
            answer = b""
        finally:
            clock.cancel()
        if answer.endswith(b"\n"):
            return answer
        self.close()
        return _LATE if late.is_set() else b""

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes and waits for it
                self._process = None


def _started() -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    kept = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "retrieval_eval.documents.read"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": paths},
    )


_REPLACEMENT = "\ufffd"
"""In place of a character that a program could not read, this one or an earlier one."""


def read_file(path: Path, kind: str, limits: Limits) -> dict[str, Any]:
    """What one file holds, or why it cannot be read, as JSON."""
    try:
        read = _read(path, kind, limits)
        texts = [text for part in read.parts for text in (part.heading, *part.paragraphs)]
        if sum(map(len, texts)) > limits.characters:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if not read.parts and not read.problems:
            raise UnreadableError("has no text; is it scanned?" if kind == "pdf" else "has no text")
    except UnreadableError as error:
        return {"problems": [str(error)]}
    except MemoryError:
        return {"problems": [f"needs more than {limits.memory_megabytes} MB of memory"]}
    except RecursionError:
        return {"problems": ["its elements are nested too deeply"]}
    except Exception as error:  # a broken file may raise anything
        return {"problems": [one_line(f"is broken: {type(error).__name__}: {error}")]}
    replaced = amounts({"character": sum(text.count(_REPLACEMENT) for text in texts)})
    said = [[storable(part.heading), part.page, list(map(storable, part.paragraphs))] for part in read.parts]
    return {
        "title": storable(read.title),
        "parts": said,
        "problems": [*map(one_line, read.problems), *([f"{replaced} lost in it (U+FFFD)"] if replaced else [])],
        "notes": list(map(one_line, read.notes)),
    }


def _read(path: Path, kind: str, limits: Limits) -> Extract:
    if kind == "pdf":
        from retrieval_eval.documents.pdf import read_pdf

        return read_pdf(path, limits)
    if kind == "docx":
        from retrieval_eval.documents.docx import read_docx

        return read_docx(path, limits)
    content = path.read_bytes()
    if kind == "html":
        from retrieval_eval.documents.text import read_html

        return read_html(content)
    from retrieval_eval.documents.text import decoded, read_plain

    if kind == "markdown":
        from retrieval_eval.documents.text import read_markdown

        return read_markdown(decoded(content))
    return read_plain(decoded(content))


def _bound_memory(megabytes: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limits, and a lower one may be set
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000,) * 2)


def main() -> None:
    """Answer until there is nothing more to read."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a library that prints must not answer
    bounded = False
    for line in sys.stdin:
        asked = json.loads(line)
        limits = Limits.model_validate(asked["limits"])
        if not bounded:
            _bound_memory(limits.memory_megabytes)
            bounded = True
        answers.write(json.dumps(read_file(Path(asked["path"]), asked["kind"], limits)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
