"""The records of tables: cells, how they are written as text, where errors stand, and which rows are wanted."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from judges.errors import DataError
from retrieval_eval.data.lists import list_in

Cell: TypeAlias = str | int | float | list[Any] | dict[str, Any] | None
"""A value of a table. CSV and TSV hold text only; JSONL and Parquet keep their types."""

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jl": "jsonl",  # as NIST names its files
    ".json": "json",
    ".parquet": "parquet",
}
_MISSING_NAMES = frozenset({"nan", "<na>"})
_SHOWN: Final = 200
"""Characters of a cell that an error shows."""
EMPTY = "is empty; fill it in, or remove the row"


class Row(Struct, frozen=True):
    """One record of a table.

    Attributes:
        path: the file.
        line: the line of the file on which the record starts, from 1; in Parquet the number of the row, from 1.
        values: cells by column name.
        left_out: how many messages of systems and tools ``with_messages`` left out.
    """

    path: Path
    line: int
    values: Mapping[str, Cell]
    left_out: int = 0

    def text(self, column: str) -> str:
        """A cell as text, see ``cell_text``; ``""`` where the row has no such column."""
        return cell_text(self.values.get(column))

    def identifier(self, column: str) -> str:
        """A cell that names something.

        Raises:
            DataError: the name is empty, only white space, or the word for a missing value (nan).
        """
        name, cell = self.text(column), self.values.get(column)
        if isinstance(cell, list | dict):
            raise self.error(f"{column!r} must be a name, and no list or object", name)
        if isinstance(cell, float) and cell.is_integer() and column in {"qid", "did"}:
            name = str(int(cell))  # pandas makes floats of whole numbers where one is missing
        if (problem := name_problem(name)) is not None:
            raise self.error(f"{column!r} {problem}", None if problem == EMPTY else name)
        return name

    def listed(self, column: str) -> list[Any] | None:
        """The list that a cell is, or that stands in its text, see ``list_in``; ``None`` where it is none.

        Raises:
            DataError: the text begins like a list and is none.
        """
        given = self.values.get(column)
        if not isinstance(given, str):
            return given if isinstance(given, list) else None
        try:
            found = list_in(given)
        except ValueError as error:
            raise self.error(f"{column!r} begins like a list and {error}", given[:_SHOWN].strip()) from error
        if found is not None and (problem := unstorable(found)) is not None:
            raise self.error(f"{column!r}: {problem}", given[:_SHOWN].strip())
        return found

    @property
    def place(self) -> str:
        """The file and the line or row, for messages about another one."""
        return f"{self.path} row {self.line}" if self._counts_rows else f"{self.path}:{self.line}"

    @property
    def _counts_rows(self) -> bool:
        return known_format(self.path) == "parquet"

    def error(self, problem: str, value: str | None = None) -> DataError:
        """The error that says what is wrong here, for the caller to raise."""
        if self._counts_rows:
            return DataError(self.path, f"row {self.line}: {problem}", value=value)
        return DataError(self.path, problem, line=self.line, value=value)


def name_problem(text: str) -> str | None:
    """Why a text names nothing, if so."""
    if not text or text.isspace():
        return EMPTY
    return "is a missing value, not a name; name it, or remove the row" if text.casefold() in _MISSING_NAMES else None


def spelling_problem(kind: str, name: str, spelt: dict[str, str]) -> str | None:
    """Why a name may be taken for an earlier one: it differs in what a reader hardly sees, or does not see at all.

    Args:
        kind: what bears the names, such as ``agents``.
        name: the name.
        spelt: the earlier names by their look; the name is added.
    """
    look = "".join(own for own in unicodedata.normalize("NFKC", name) if unicodedata.category(own) != "Cf")
    other = spelt.setdefault(_plain(look), name)
    if other == name:
        return None
    alike = "differ in case or spaces only" if _plain(other) == _plain(name) else "look alike"
    return f"{kind} {other!a} and {name!a} {alike}; spell them alike, or rename one"


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def cell_text(value: Cell) -> str:
    """The text that stands for a cell in CSV and in metadata: nothing and NaN are ``""``, a nested value is JSON."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else str(value)


def alike(text: str) -> str:
    """What is the same of texts that differ only in blanks, unseen characters, or how a character is coded (NFC)."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFC", text).translate(_UNSEEN).split())


_UNSEEN: Final = dict.fromkeys((0xAD, 0x200B, 0xFEFF))
"""A soft hyphen, a blank without width and a byte order mark."""


def are_floats(ids: Iterable[str]) -> bool:
    """Whether all ids are whole numbers written as floats, as pandas does where one is missing."""
    given = list(ids)
    return bool(given) and all(map(_FLOAT.fullmatch, given))


def in_form(ident: str, *, floats: bool) -> str:
    """An id as a table has it whose ids are all floats, or none of them."""
    if _FLOAT.fullmatch(ident):
        return ident if floats else ident.partition(".")[0]
    return f"{ident}.0" if floats and ident.isascii() and ident.isdigit() else ident


_FLOAT: Final = re.compile(r"[0-9]+\.0")


def id_of_text(kind: str, text: str) -> str:
    """The id of a text that has none: the same for the same text, wherever it stands."""
    return f"{kind}-{hashlib.sha256(alike(text).encode()).hexdigest()[:10]}"


def table_format(path: Path | str) -> str:
    """``csv``, ``tsv``, ``jsonl``, ``json`` or ``parquet``.

    Raises:
        DataError: the file's extension is none of a table.
    """
    if (kind := known_format(path)) is None:
        if Path(path).is_dir():
            raise DataError(path, f"a folder; name the files in it, such as '{path}/*.csv'")
        if not Path(path).suffix and not Path(path).exists():
            raise no_file(path)
        if Path(path).suffix.lower() in {".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"}:
            raise DataError(path, "not a table but a spreadsheet; save it as CSV in UTF-8, and name that")
        raise DataError(path, f"not a table: the name must end in {', '.join(FORMATS)}, with or without .gz")
    return kind


@lru_cache(maxsize=64)  # asked for every row
def known_format(path: Path | str) -> str | None:
    """The same, or ``None`` where the extension is none of a table."""
    return FORMATS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def canonical_names(
    found: Iterable[str], aliases: Mapping[str, Sequence[str]], columns: Columns | None = None
) -> dict[str, str]:
    """For each column found the name it goes by, ``""`` where it is passed over.

    Args:
        found: the columns of a table.
        aliases: for a canonical name its other spellings, of which the first that is there counts.
        columns: which column the user says it is; what the table has not, and what is not said, goes by ``aliases``.
    """
    names = {name: name if name.strip() else "" for name in found}
    said = {ours: theirs for ours, theirs in (columns or {}).items() if theirs is None or theirs in names}
    names |= dict.fromkeys(said.keys() & names.keys(), "")
    names |= {theirs: ours for ours, theirs in said.items() if theirs is not None}
    folded = {_folded(name): name for name in reversed(names)}
    for canonical, spellings in aliases.items():
        if canonical in said or canonical in names.values():
            continue
        # Where there are messages, the last may be the question, and a title something else.
        strict = canonical == "query" and "messages" in names.values()
        for spelling in (canonical, *(NAMES["query"] if strict else spellings)):
            name = spelling if spelling in names else folded.get(_folded(spelling))
            if name is not None and names[name] == name:
                names[name] = canonical
                break
    return names


def confusable(names: Mapping[str, str], ours: Collection[str]) -> str | None:
    """Why two columns of a table may be taken for each other, if so, by the names that they go by.

    Spaces around a name tell no columns apart; nor does case, where one of them is of our ``ours``.
    """
    seen: dict[str, str] = {}
    for name in filter(names.get, names):
        other = seen.setdefault(name.strip().casefold(), name)
        if other != name and (other.strip() == name.strip() or not {names[name], names[other]}.isdisjoint(ours)):
            return f"columns {other!r} and {name!r} differ in case or spaces only; rename one, or leave it out"
    return None


Columns: TypeAlias = Mapping[str, str | None]
"""For a name of ours the column of the user's tables; ``None`` where no column is it."""


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def lacks(column: str, names: Collection[str]) -> bool:
    """Whether columns lack one that is required; a question may be the last of ``messages``."""
    return column not in names and not (column == "query" and "messages" in names)


def missing_column(
    path: Path,
    column: str,
    found: Iterable[str],
    line: int | None = None,
    *,
    also: Sequence[str] = (),
    mapped: bool = False,
    option: bool = False,
) -> DataError:
    """The error that says which column a table lacks and which one may be meant, for the caller to raise.

    Args:
        path: the table.
        column: what it lacks.
        found: its columns.
        line: of its header, where it has one.
        also: other names that would have been accepted.
        mapped: whether the user may say which column it is, in the YAML file or by an option.
        option: whether by an option alone.
    """
    from judges.sections import shortened

    names = [name for name in found if name]
    near = difflib.get_close_matches(column, [name for name in names if name not in NAMES], n=1)
    theirs = near[0] if near else "NAME"
    which = f"; or: {how_to_name(column, theirs)}" if mapped else f"; is it {near[0]!r}?" if near else ""
    which = f"; or say --column {column}={theirs}" if option else which
    room = _ROOM - len(os.path.relpath(path)) - len(column) - len(which)
    accepted = f"; may be called {shortened(also, max(room // 2, 20))}" if also else ""
    found_names = shortened(names, max(room - len(accepted), 20)) or "none"
    return DataError(path, f"no column {column!r}; found {found_names}{accepted}{which}", line=line)


_ROOM: Final = 108
"""Characters of two lines of 80 for names, without what else an error about a column says."""


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """How a user says which column of the tables is one of ours: in the YAML file, or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"


def no_file(path: Path | str) -> DataError:
    """The error that says which file is not there, and which may be meant, for the caller to raise."""
    from judges.sections import did_you_mean

    path = Path(path)
    if path.is_symlink():
        return DataError(path, f"a link to {path.readlink()}, which is not there; mend it, or name another file")
    if re.search(r"(^|/)https?:/", str(path)):
        return DataError(path, "no such file; download it, and name the file")
    beside = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
    return DataError(path, f"no such file{did_you_mean(path.name, beside) or '; check its name and folder'}")


def unstorable(value: object) -> str | None:
    """Why a cell can be kept neither in a UTF-8 file nor in a database, if so."""
    for text in _texts(value):
        if "\0" in text:
            return "the text holds a NUL character; remove it"
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                return "the text is not UTF-8, or holds half a surrogate pair; write its characters whole"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, cell in value.items():
            yield from _texts(key)
            yield from _texts(cell)
    elif isinstance(value, list | tuple):
        for cell in value:
            yield from _texts(cell)


class Only(Struct, frozen=True):
    """The rows whose cell in one column, as text, is one of ``values``."""

    column: str
    values: Set[str]


class LineFilter:
    """Passes over lines of JSON that are about something else, without decoding them."""

    def __init__(self, only: Only) -> None:
        self._values = only.values
        self._key: re.Pattern[str] | None = None

    def learn(self, keys: Iterable[str]) -> None:
        """The names under which the records seen so far have the column."""
        names = "|".join(re.escape(json.dumps(key)) for key in keys)
        self._key = re.compile(rf'(?:{names})\s*:\s*(?:"([^"\\]*)"|(-?[0-9]+)[\s,}}])')

    def passes_over(self, line: str) -> bool:
        """Whether the line ends as a record does and says, wherever it has the key, that it is not wanted.

        A quote within a JSON string is escaped, so that no text of a document looks like the key.
        """
        found = [text or number for text, number in self._key.findall(line)] if self._key is not None else []
        return bool(found) and self._values.isdisjoint(found) and line.rstrip().endswith("}")


NAMES: Final[Mapping[str, Sequence[str]]] = {
    "qid": ("query_id", "topic_id", "question_id", "_id", "id", "prompt_id", "number"),
    "query": ("question", "user_input", "input", "prompt", "query_text", "user_query"),
    "messages": (),
    "conversation": (),
    "turn": (),
    "agent": ("system", "run_id", "model", "agent_name", "system_name"),
    "answer": ("response", "output", "actual_output", "prediction", "answer_text", "completion", "generated_answer"),
    "passages": ("contexts", "retrieved_contexts", "retrieval_context", "retrieved_documents"),
    "reference": (
        "reference_answer",
        "expected_output",
        "expected_answer",
        "ground_truth",
        "ground_truths",
        "gold_answer",
    ),
    "did": ("_id", "pid", "docid", "doc_id", "document_id", "id"),
    "document": ("segment", "passage", "contents", "text", "body", "document_text", "content", "page_content", "chunk"),
}
"""For each of our columns the other spellings, best first, accepted where the column itself is absent.

RAGElo, ragas, DeepEval, promptfoo, BEIR, MS MARCO, Pyserini, TREC. A name counts without regard to case, spaces, ``_``
and ``-``, so that ``retrievalContext`` is ``retrieval_context``.
"""


def names_of(*columns: str) -> dict[str, Sequence[str]]:
    """The spellings of some columns."""
    return {column: NAMES[column] for column in columns}


TOPIC_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "qid": NAMES["qid"],
    "query": ("text", "title", "question", "topic", "query_text", "narrative", *NAMES["query"][1:]),
    **{name: NAMES[name] for name in ("reference", "messages", "conversation", "turn")},
}
"""Those of a table of queries, where a title or a text can only be the query's."""
