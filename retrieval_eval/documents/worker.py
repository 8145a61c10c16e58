"""The process that reads files nobody vouches for: what it takes is bounded, and it can be ended at any time.

``python -m retrieval_eval.documents.worker`` reads a JSON object per line, ``{"path", "kind", "limits"}``, and writes
one for each: ``{"title", "parts", "problems", "notes"}``, or ``{"problems"}`` where nothing could be read.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from judges.providers.texts import one_line, storable
from retrieval_eval.documents.types import Extract, Limits, UnreadableError, amounts

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
        from retrieval_eval.documents.html import read_html

        return read_html(content)
    from retrieval_eval.documents.plain import decoded, read_plain

    if kind == "markdown":
        from retrieval_eval.documents.markdown import read_markdown

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
