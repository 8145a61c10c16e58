"""Reads folders and files into documents, one at a time; reports and skips unreadable files.

Files may come from strangers, so a separate process with limited memory and time reads them: ``python -m
retrieval_eval.documents.read`` reads one JSON object per line, ``{"path", "kind", "limits"}``, and answers each with a
line ``{"title", "parts", "problems", "notes"}``, or ``{"problems"}`` if the file cannot be read.
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
"""Prefixes of files that are not documents: settings, version control, lock files of word processors."""

_ENVIRONMENT = frozenset(
    {"PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}
)
"""Environment variables that are passed on to the process that reads files; API keys are not."""


class File(Struct, frozen=True):
    """A file that the user named or that a folder contains, or a folder whose files are not read.

    Attributes:
        source: name of the document in the file, see ``SourceDocument``.
        folder: the folder that the user named and that contains the file; ``None`` if the user named the file itself.
        unread: note on why the file is not read, for example because it is hidden; always set for a folder.
    """

    path: Path
    source: str
    folder: Path | None = None
    unread: FileNote | None = None

    @property
    def kind(self) -> str | None:
        """The file's format by its extension; ``None`` if no reader exists for it, or if the file is not read."""
        return None if self.unread is not None else KINDS.get(self.path.suffix.lower())


def read_documents(paths: Sequence[Path], limits: Limits | None = None) -> Iterator[SourceDocument | FileNote]:
    """Read documents from single files, and from folders at any depth in the order of their paths.

    In folders, files of unknown formats are skipped (``files_of`` lists them). Hidden files and folders, and links to
    folders, are reported but not read. Notes on a file follow its document. A separate process reads the files; this
    function kills it if a file takes too long.
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
    """The named files and all files in the named folders, then the hidden or unreadable files and folders."""
    files_by_source: dict[str, File] = {}
    unread: list[File] = []
    for path in paths:
        for file in _below(path):
            if file.unread is not None:
                unread.append(file)
                continue
            if file.source in files_by_source:
                raise InputError(
                    f"{file.path}: another document is called {file.source!r} too; name one folder that contains both"
                )
            files_by_source[file.source] = file
    return [*files_by_source.values(), *unread]


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
    """Yields all files below a folder, unsorted, and the folders in it that are not read."""
    errors: list[OSError] = []
    for folder, folders, names in os.walk(top, onerror=errors.append):
        for name in (*folders, *names):
            path = Path(folder, name)
            source = path.relative_to(top).as_posix()
            unread = None
            if name.startswith(_HIDDEN):
                unread = FileNote(storable(source), "hidden, not read", "note")
            elif path.is_symlink() and path.is_dir():
                unread = FileNote(storable(source), "is a link to a folder; name that folder to have it read")
            if unread is not None or name in names:
                yield File(path, source, top, unread)
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
    for error in errors:
        path = Path(error.filename)
        source = path.relative_to(top).as_posix()
        yield File(path, source, top, FileNote(storable(source), f"cannot be read: {error.strerror}"))


class _AnswerCache(dict[str, bytes]):
    """Cache of the reading process's answers, limited to a total number of bytes."""

    left = 2**26

    def keep(self, key: str, answer: bytes) -> None:
        if key not in self and len(answer) <= self.left:
            self[key] = answer
            self.left -= len(answer)


_ANSWERS: Final = _AnswerCache()
"""Content of files, for all readers: a command may read a folder twice, to make queries and to let agents search it."""
_LATE: Final = b"late"


class _Reader:
    """Client of the process that reads files; if that process was killed, the next file starts a new one."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, file: File) -> Iterator[SourceDocument | FileNote]:
        problem = self._problem(file)
        answer: dict[str, Any] = {"problems": [problem]} if problem is not None else self._reply(file)
        if parts := tuple(
            DocumentPart(heading, page, tuple(texts)) for heading, page, texts in answer.get("parts", ())
        ):
            yield SourceDocument(file.source, answer["title"] or file.path.stem, parts)
        for problem in answer["problems"]:
            yield FileNote(storable(file.source), problem, "partly read" if parts else "skipped")
        for note in answer.get("notes", ()):
            yield FileNote(storable(file.source), note, "note")

    def _problem(self, file: File) -> str | None:
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

    def _reply(self, file: File) -> dict[str, Any]:
        file_stat = file.path.stat()
        request = {"path": str(file.path.resolve()), "kind": file.kind, "limits": self._limits.model_dump()}
        key = json.dumps([request, file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns])
        answer = _ANSWERS.get(key) or self._answer(request)
        if answer.endswith(b"\n"):
            _ANSWERS.keep(key, answer)
            parsed: dict[str, Any] = json.loads(answer)
            return parsed
        if answer:
            return {"problems": [f"took longer than {self._limits.seconds:g} s"]}
        return {"problems": ["crashed the process that read it"]}

    def _answer(self, request: dict[str, Any]) -> bytes:
        """The reading process's answer to a request, as one line; ``_LATE`` if it took too long, ``b""`` if it died."""
        process = self._process = self._process or _started()
        timed_out = threading.Event()

        def kill() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(self._limits.seconds, kill)
        assert process.stdin is not None
        assert process.stdout is not None
        timer.start()
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:  # the process died
            answer = b""
        finally:
            timer.cancel()
        if answer.endswith(b"\n"):
            return answer
        self.close()
        return _LATE if timed_out.is_set() else b""

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes and waits for it
                self._process = None


def _started() -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    environment = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "retrieval_eval.documents.read"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**environment, "PYTHONPATH": paths},
    )


_REPLACEMENT = "\ufffd"


def read_file(path: Path, kind: str, limits: Limits) -> dict[str, Any]:
    """The content of one file, or the reason why it cannot be read, as JSON for the process that asked for it."""
    try:
        extract = _read(path, kind, limits)
        texts = [text for part in extract.parts for text in (part.heading, *part.paragraphs)]
        if sum(map(len, texts)) > limits.characters:
            raise UnreadableError(f"has more than {limits.characters} characters of text")
        if not extract.parts and not extract.problems:
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
    parts = [[storable(part.heading), part.page, list(map(storable, part.paragraphs))] for part in extract.parts]
    return {
        "title": storable(extract.title),
        "parts": parts,
        "problems": [*map(one_line, extract.problems), *([f"{replaced} lost in it (U+FFFD)"] if replaced else [])],
        "notes": list(map(one_line, extract.notes)),
    }


def _read(path: Path, kind: str, limits: Limits) -> Extract:
    if kind == "pdf":
        from retrieval_eval.documents.text import read_pdf

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


def main() -> None:
    """Run the reading process: answer the requests on standard input until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # prints of libraries must not mix with the answers
    memory_limited = False
    for line in sys.stdin:
        request = json.loads(line)
        limits = Limits.model_validate(request["limits"])
        if not memory_limited:
            # Windows has no such limit, and a lower limit may be set already.
            with suppress(ImportError, ValueError, OSError):
                import resource

                resource.setrlimit(resource.RLIMIT_AS, (limits.memory_megabytes * 1_000_000,) * 2)
            memory_limited = True
        answers.write(json.dumps(read_file(Path(request["path"]), request["kind"], limits)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
