"""Names of table columns: their spellings, the columns of each kind of table, and log messages on how they were read.

A spelling means the same column in every command. Commands print the log messages on standard error; a program sees
them if it sets the logger ``ragleague.read`` to INFO.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from judges.errors import DataError, InputError
from retrieval_eval.data.rows import Only, Row, Rows
from retrieval_eval.data.tables import memory_rows, read_rows

Columns: TypeAlias = Mapping[str, str | Sequence[str] | None]
"""The user's choices: for a canonical column name the table's column to use, or ``None`` to use no column.

Several columns are one for each agent or person: each row of the table is then read as a row for each of them.
"""


def names_of(theirs: str | Sequence[str] | None) -> Sequence[str]:
    """The table's columns that the user chose for one column."""
    return () if theirs is None else (theirs,) if isinstance(theirs, str) else theirs


class Term(Struct, frozen=True):
    """What a column contains, in words, and the column's other spellings, best first."""

    holds: str
    spellings: Sequence[str] = ()


JOINED: Final[Mapping[str, tuple[str, str]]] = {
    "answer": (
        "generated model system rag llm bot chatbot assistant ai agent predicted actual final",
        "answer response output",
    ),
    "reference": (
        "gt gold golden reference expected ground_truth correct ideal target true best",
        "answer answers response output outputs",
    ),
}
"""Two-word spellings, such as ``model_output``: for each column the possible first words and second words."""


def _term(holds: str, words: str, column: str = "") -> Term:
    """A term with the spellings in ``words``, and with the two-word spellings that ``JOINED`` gives for the column."""
    first, second = (part.split() for part in JOINED.get(column, ("", "")))
    joined = (f"{left}_{right}" for left in first for right in second)
    return Term(holds, tuple(dict.fromkeys((*words.split(), *joined))))


def _of_side(side: str, others: str) -> str:
    return " ".join([f"{name}_{side}" for name in _AGENTS.split()] + [others])


_AGENTS: Final = "system run_id model agent_name system_name generator"
VOCABULARY: Final[Mapping[str, Term]] = {
    "qid": _term(
        "id of the query; without it, queries are told apart by their texts",
        "query_id topic_id question_id prompt_id _id id number",
    ),
    "query": _term(
        "text of the query; in a table of queries also `text`, `title`, `topic`, `narrative`",
        "question user_input input inputs prompt query_text user_query instruction",
    ),
    "messages": _term(
        "what was said before the query in its [conversation](conversations.md)",
        "conversation_history chat_history message_history dialogue_history dialog_history",
    ),
    "conversation": Term("of a query: the conversation that it is a turn of"),
    "turn": Term("of a query: its place there, from 1"),
    "agent": _term("whose answer it is; without it, the file's name", _AGENTS),
    "answer": _term(
        "its text; it may be empty, and is judged then like any other",
        "response output actual_output prediction answer_text completion generation hypothesis generated_text "
        "generated outputs predictions",
        "answer",
    ),
    "repeat": _term(
        "which of several answers of one agent to the query: 1, 2, 3, or any other values; see [repeats](repeats.md)",
        "repeat_id repetition replicate replicate_id epoch trial trial_id",
    ),
    "passages": _term(
        "a list of the texts that were retrieved for the answer",
        "contexts retrieved_contexts retrieved_context retrieval_context retrieval_contexts retrieved_documents "
        "retrieved_passages retrieved_docs retrieved_chunks source_documents",
    ),
    "reference": _term(
        "a gold answer to the query, which judges of answers see, and agents do not",
        "reference_answer expected_output expected_answer ground_truth ground_truths gold_answer gt gold golden "
        "expected targets",
        "reference",
    ),
    "did": _term(
        "id of the document; without it, documents are told apart by their texts",
        "_id pid docid doc_id document_id corpus_id passage_id paragraph_id id",
    ),
    "document": _term(
        "its text", "segment passage contents text body document_text content page_content chunk passage_text"
    ),
    "rank": Term("of a retrieved document: its rank, from 1; without it, the order of the rows"),
    "score": _term("of a retrieved document: its score; or a grade", "sim similarity"),
    "error": _term("why there is no answer", "error_message error_msg err exception failure"),
    "agent_a": _term("the agent of the first answer", _of_side("a", "left generator_1 model_1 system_1")),
    "agent_b": _term("the agent of the second answer", _of_side("b", "right generator_2 model_2 system_2")),
    "verdict": _term("which answer is better", "winner vote preference preferred choice"),
    "winner_ab": _term("which answer is better where that of `agent_a` was shown first", "g1_winner"),
    "winner_ba": _term("which answer is better where that of `agent_b` was shown first", "g2_winner"),
    "p_a": _term("probability that the answer of `agent_a` is better; 1 or 0 if it is the winner", "winner_model_a"),
    "p_b": _term("the same of `agent_b`", "winner_model_b"),
    "p_tie": _term("the same of a tie", "winner_tie"),
    "ranking": Term("agents in order, best first: `a > b = c`, or a list"),
    "weight": _term("how many games a verdict counts as", "weights"),
    "judge": _term("who judged", "annotator worker rater judge_name annotator_id worker_id rater_id"),
    "annotator": _term("who judged", "judge worker rater judge_name annotator_id worker_id rater_id"),
    "order": _term("which of the two answers was shown first", "baseline_shown"),
    "reason": _term("why the judge said so", "raw_answer"),
    "criterion": _term("what a grade or score is about", "metric metric_name measure score_name evaluator"),
    "label": _term("relevance of a document", "relevance rel"),
    "item": _term("id of a question or nugget of a test bank", "item_id question_id nugget_id"),
    "grade": _term("how well a passage answers an item", "rating self_rating"),
    "llm": _term("the model that graded", "model grader"),
    "prompt": _term("the prompt that it was given", "prompt_class"),
    "facet": _term("subtopic of a query", "facet_id"),
    "question": _term("text of an item that is a question", "question_text"),
    "nugget": _term("text of an item that is a nugget", "nugget_text"),
    "answers": _term("gold answers of an item", "gold_answers"),
    "length": _term("words of an answer", "response_length words"),
}
"""Every canonical column name that has other spellings or that the user can map to a column, with its meaning.

The spellings come from RAGElo, ragas, DeepEval, promptfoo, RAGChecker, Giskard, BEIR, MS MARCO, Pyserini and TREC.
Case, spaces, ``_`` and ``-`` are ignored, so ``retrievalContext`` equals ``retrieval_context``.
"""
SHOWN_SWAPPED: Final = {"ab": False, "ba": True, "1": False, "2": True, "first": False, "second": True}
"""For each word that the column ``order`` may contain, whether agent_b's answer was shown first."""
OF_DATA: Final = (
    *("qid", "query", "messages", "conversation", "turn", "agent", "answer", "passages", "reference"),
    *("did", "document", "rank", "score", "repeat"),
)
"""Columns of queries, answers and documents; a configuration can say which column of a table each of them is."""


def spellings(column: str) -> Sequence[str]:
    """The other accepted names of a column; empty if the vocabulary lacks the column."""
    return VOCABULARY[column].spellings if column in VOCABULARY else ()


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A column name in lower case without spaces, ``_`` and ``-``, for comparison."""
    return re.sub(r"[\s_-]", "", name).casefold()


def how_to_name(column: str, theirs: str = "NAME") -> str:
    """Advice for error messages: how to choose the column for a canonical name, in YAML or on the command line."""
    return f"columns: {{{column}: {theirs}}}, or --column {column}={theirs.replace('null', '')}"


READ: Final = logging.getLogger("ragleague.read")
KEPT: Final = "kept as metadata"
"""What the log says about further columns of queries, documents and answers."""
_FILES: Final = 3
_LAYOUTS: Final = 4
"""Greatest number of log lines about tables; each line describes one distinct set of columns."""
_COLUMNS: Final = 12
_NAME: Final = 40


class ColumnsRead:
    """Collects, row by row, which columns of tables were used, then logs it."""

    def __init__(self, used: Collection[str], *, kept: str = "") -> None:
        """``used`` are the canonical columns that are read; ``kept`` says what happens to others, if anything."""
        self._used, self._kept = used, kept
        self._called: dict[tuple[str, str], dict[str, str]] = {}
        self._last: Mapping[str, str] | None = None

    def add(self, row: Row, form: str = "") -> None:
        """Record the columns of a row; ``form`` names the tool or study that wrote the file, if not a plain table."""
        if row.called is not self._last:
            self._last = row.called
            self._called.setdefault((str(row.path), form or row.form), {}).update(row.called)

    def through(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.add(row)
            yield row

    def say(self, count: str = "", *, plain: bool = True) -> None:
        """Log which columns were used; tables with the same columns share a line.

        Args:
            count: text with the numbers of items read, to add to the log.
            plain: whether to include tables whose column names are all canonical already.
        """
        paths_by_columns: dict[tuple[str, str], list[str]] = {}
        for (path, form), called in self._called.items():
            if not plain and all(theirs == ours in self._used for theirs, ours in called.items()):
                continue
            paths_by_columns.setdefault((form, self._columns(called)), []).append(path)
        lines = [
            f"{_listed(paths, _FILES)}{f' ({form})' if form else ''}{f': {columns}' if columns else ''}"
            for (form, columns), paths in paths_by_columns.items()
        ]
        if len(lines) > _LAYOUTS:
            lines = [*lines[:_LAYOUTS], f"{len(lines) - _LAYOUTS} more kinds of tables, with other columns"]
        if count and len(self._called) == len(lines) == 1:
            lines, count = [f"{lines[0]}; {count}"], ""
        for line in filter(None, (*lines, count)):
            READ.info("%s", line)

    def _columns(self, called: Mapping[str, str]) -> str:
        named = ((name, ours) for name, ours in called.items() if name.strip())
        canonical = {name if len(name) <= _NAME else f"{name[: _NAME - 1]}…": ours for name, ours in named}
        read = [
            ours if ours == theirs else f"{ours}={theirs}" for theirs, ours in canonical.items() if ours in self._used
        ]
        unused = [theirs for theirs, ours in canonical.items() if ours not in self._used]
        use = f", {self._kept}" if self._kept else ""
        parts = [", ".join(read), f"not used{use}: {_listed(unused, _COLUMNS)}" if unused else ""]
        return "; ".join(filter(None, parts))


def say_read(
    path: Path | str, called: Mapping[str, str], used: Collection[str], count: str = "", form: str = ""
) -> None:
    """Log which columns of one table were used; ``called`` maps its column names to canonical names."""
    reading = ColumnsRead(used)
    reading.add(Row(Path(path), 0, {}, called=called), form)
    reading.say(count)


def say_count(paths: Sequence[Path | str], **counts: int) -> None:
    """Log how many items of each kind were read from these files; logs nothing if there are no files."""
    if not paths:
        return
    numbers = ", ".join(f"{name}: {number:,}" for name, number in counts.items())
    READ.info("%s", f"{_listed([str(path) for path in paths], _FILES)} ({numbers})")


def _listed(names: Sequence[str], limit: int) -> str:
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


@contextmanager
def unsaid() -> Iterator[None]:
    """Log nothing about columns within the block, for example when files are read only to compare them."""
    was_disabled = READ.disabled
    READ.disabled = True
    try:
        yield
    finally:
        READ.disabled = was_disabled


_SINGLE: Final[Mapping[str, str]] = {
    "answer": "the answer",
    "reference": "the gold answer",
    "passages": "the passages",
    "verdict": "the verdict",
}
"""Columns that must not be ambiguous, since a wrong choice would silently change the judgments; each with its
description for error messages."""
_UNAMBIGUOUS: Final = {"verdict": {"verdict", "winner"}}
"""For a column, spellings that are used even if other columns could be meant too. ``answer`` is not listed, since data
sets also use it for the gold answer."""
_CONVERSATIONS: Final = ("turns", "user_input", "messages")
"""Columns of DeepEval, ragas and chat logs that contain a whole conversation with its answers."""
_ROOM: Final = 108
"""Number of characters for column names in an error message of two lines of 80 characters."""
_NUMBERS: Final = {2: "two", 3: "three"}


class Wide(Struct, frozen=True):
    """Columns of a table that are one each for an agent or a person; ``long`` makes a row of each of their cells.

    Attributes:
        ours: the column that each of them is.
        named_by: the column for their names.
        theirs: the table's columns.
        columns: the user's other choices of columns.
    """

    ours: str
    named_by: str
    theirs: tuple[str, ...]
    columns: Columns

    def header(self, header: Iterable[str]) -> list[str]:
        return [*(name for name in header if name not in {*self.theirs, self.ours, self.named_by}), *self._added]

    @property
    def _added(self) -> tuple[str, str]:
        return self.ours, self.named_by

    @property
    def form(self) -> str:
        return f"{self.ours} of each {self.named_by}: {_listed(self.theirs, _FILES)}"

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """A row for each of the columns that has a cell; an empty cell is nobody's."""
        for row in rows:
            if missing := [name for name in self.theirs if name not in row.values]:
                raise row.error(f"no column {missing[0]!r}; found {_listed(list(row.values), _COLUMNS)}")
            rest = {name: cell for name, cell in row.values.items() if name not in {*self.theirs, *self._added}}
            for name in self.theirs:
                if row.text(name).strip():
                    cells = {**rest, self.ours: row.values[name], self.named_by: name}
                    yield replace(row, values=cells, form=self.form)


class TableSpec(Struct, frozen=True):
    """The columns that one kind of table has, by their names in ``VOCABULARY``.

    Attributes:
        columns: all columns that are read; if two of them share a spelling, it belongs to the first.
        needed: the columns that a table must have.
        words: for a column, spellings to try before those of the vocabulary, because in this kind of table these words
            mean the column.
        kept: whether other columns are kept as metadata.
        option: whether the user chooses columns by ``--column`` alone, and not in a configuration.
        named_by: for a column that several columns of the table may be, the column that holds the names of these.
    """

    columns: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept: bool = False
    option: bool = False
    named_by: Mapping[str, str] = field(default_factory=dict)

    def spellings(self, column: str) -> tuple[str, ...]:
        """The other accepted names of a column in this kind of table, best first."""
        if column not in self.columns:
            return ()
        return tuple(dict.fromkeys((*self.words.get(column, ()), *spellings(column))))

    def rows(
        self, source: Path | str | Rows, columns: Columns | None = None, only: Only | None = None
    ) -> Iterator[Row]:
        """Stream a table's rows, their columns renamed to canonical names; ``columns`` are the user's choices."""
        if (wide := self.wide(columns)) is not None:
            return self.renamed(wide.rows(read_rows(source)), wide.columns)
        if isinstance(source, Rows):
            return self.renamed(memory_rows(source), columns)

        def named(line: int | None, header: Sequence[str], cells: Mapping[str, Any] | None) -> dict[str, str]:
            return self.checked(Path(source), header, columns, line=line, cells=cells)

        return read_rows(source, named, only)

    def wide(self, columns: Columns | None) -> Wide | None:
        """The user's choice of several columns for one; ``None`` if there is none."""
        chosen = {
            name: theirs
            for name, theirs in (columns or {}).items()
            if not isinstance(theirs, str | None) and name in {*self.columns, *self.named_by}
        }
        if not chosen:
            return None
        ours, theirs = next(iter(chosen.items()))
        if len(chosen) > 1 or ours not in self.named_by:
            one = next(name for name in chosen if name not in self.named_by or name != ours)
            raise InputError(f"columns: only one column can be {one!r} here; name one: --column {one}={chosen[one][0]}")
        rest = {name: column for name, column in (columns or {}).items() if name != ours}
        return Wide(ours, self.named_by[ours], tuple(theirs), rest)

    def renamed(self, rows: Iterable[Row], columns: Columns | None = None) -> Iterator[Row]:
        """The same rows with their columns renamed to canonical names."""
        by_header: dict[tuple[str, ...], dict[str, str]] = {}  # most rows have the same
        for row in rows:
            header = tuple(row.values)
            if (called := by_header.get(header)) is None:
                called = by_header[header] = self.checked(row.path, header, columns, line=row.line, cells=row.values)
            values = {called[name]: cell for name, cell in row.values.items() if called[name]}
            yield replace(row, values=values, called=called)

    def report(self, *further: str) -> ColumnsRead:
        """An empty report on the use of columns, for tables of this kind that also use the ``further`` columns."""
        return ColumnsRead({*self.columns, *self.needed, *further}, kept=KEPT if self.kept else "")

    def has_all(self, header: Iterable[str], columns: Columns | None = None) -> bool:
        return set(self.needed) <= set(self.named(header, columns).values())

    def named(
        self, header: Iterable[str], columns: Columns | None = None, objects: Collection[str] = ()
    ) -> dict[str, str]:
        """The canonical name for each column of a table, ``""`` if the column is ignored.

        The user's choices in ``columns`` have priority. Spellings decide about all other columns, also if the table
        lacks the column that the user chose. Columns in ``objects``, whose cells are JSON objects, become the answer
        only if no other column can.
        """
        names = {name: name if name.strip() else "" for name in header}
        if (wide := self.wide(columns)) is not None:
            columns = wide.columns
        chosen = {
            ours: theirs
            for ours, theirs in (columns or {}).items()
            if theirs is None or (isinstance(theirs, str) and theirs in names)
        }
        names |= dict.fromkeys(chosen.keys() & names.keys(), "")
        names |= {theirs: ours for ours, theirs in chosen.items() if theirs is not None}
        for ours in chosen.keys() & _SINGLE.keys() & set(self.columns):
            rivals = [theirs for theirs in self._spelt(names, ours) if names[theirs] == theirs != chosen[ours]]
            names |= dict.fromkeys(rivals, "")
        by_folded, ours_all = {folded(name): name for name in reversed(names)}, {*self.columns, *self.needed}
        for ours in self.columns:
            if ours in chosen or ours in names.values():
                continue
            # With messages the last one may be the question; then a title is something else.
            others = spellings(ours) if ours == "query" and "messages" in names.values() else self.spellings(ours)
            alike = (name if name in names else by_folded.get(folded(name), "") for name in (ours, *others))
            free = [name for name in alike if name and names[name] == name and name not in ours_all]
            best = [name for name in free if ours != "answer" or name not in objects] or free
            names |= dict.fromkeys(best[:1], ours)
        return names

    def checked(
        self,
        path: Path,
        header: Collection[str],
        columns: Columns | None = None,
        *,
        line: int | None = None,
        cells: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """The canonical name for each column, see ``named``; a missing or ambiguous column raises an error.

        Args:
            path: the table.
            header: the table's column names.
            columns: the user's choice of columns; ``None`` if the user has no way to choose.
            line: line number of the header or of the row.
            cells: the row's cells, if rows may differ in their columns; a row with an ``error`` may lack ``answer``.
        """
        objects = {name for name, cell in (cells or {}).items() if isinstance(cell, dict)}
        names = self.named(header, columns, objects)
        if (problem := self._clash(names, columns, objects)) is not None:
            raise DataError(path, problem, line=line)
        present = set(names.values())
        for column in self.needed:
            is_there = column in present or (column == "query" and "messages" in present)
            if is_there or (cells is not None and column == "answer" and "error" in present):
                continue
            for whole in _CONVERSATIONS if cells is not None and column in {"answer", "query"} else ():
                row = Row(path, line or 0, cells or {})
                if any(isinstance(each, dict) for each in row.listed(whole) or ()):
                    problem = "is a whole conversation; write a row for each turn to judge, with 'messages' before its"
                    raise row.error(f"{whole!r} {problem} answer")
            raise self.missing(path, column, header, line, chosen=columns is not None)
        return names

    def missing(
        self, path: Path, column: str, header: Iterable[str], line: int | None = None, *, chosen: bool = False
    ) -> DataError:
        """Make an error that names the missing column and a likely one; ``chosen``: the user can choose the column."""
        from judges.sections import shortened

        names, also = [name for name in header if name], self.spellings(column)
        similar = difflib.get_close_matches(column, [name for name in names if name not in OF_DATA], n=1)
        suggestion = similar[0] if similar else "NAME"
        advice = f"; is it {similar[0]!r}?" if similar else ""
        if chosen:
            how = f"say --column {column}={suggestion}" if self.option else f": {how_to_name(column, suggestion)}"
            advice = f"; or {how}".replace("or :", "or:")
            left = [name for name, ours in self.named(names).items() if name == ours and name not in VOCABULARY]
            if column in self.named_by and len(left) > 1 and not similar and self.option:
                advice += f", once for each {self.named_by[column]} if each has a column"
            elif column in self.named_by and len(left) > 1 and not similar and len(left[0] + left[1]) <= _NAME:
                each = f'--column "{column}={left[0]}" --column "{column}={left[1]}"'
                advice = f"; or, if each {self.named_by[column]} has a column, say {each}"
        room = _ROOM - len(os.path.relpath(path)) - len(column) - len(advice)
        accepted = f"; may be called {shortened(also, max(room // 2, 20))}" if also else ""
        found_names = shortened(names, max(room - len(accepted), 20)) or "none"
        return DataError(path, f"no column {column!r}; found {found_names}{accepted}{advice}", line=line)

    def _clash(self, names: Mapping[str, str], columns: Columns | None, objects: Collection[str]) -> str | None:
        """An error message if the columns of a table are ambiguous, else ``None``.

        They are ambiguous if two columns differ only in spaces, or only in case and one of them is read; or if several
        columns are spellings of the answer (or gold answer, passages, verdict) and ``columns`` does not choose one.
        """
        from judges.sections import shortened

        ours, seen = {*self.columns, *self.needed}, dict[str, str]()
        for name in filter(names.get, names):
            other = seen.setdefault(name.strip().casefold(), name)
            if other != name and (other.strip() == name.strip() or not {names[name], names[other]}.isdisjoint(ours)):
                return f"columns {other!r} and {name!r} differ in case or spaces only; rename one, or leave it out"
        for column in (name for name in _SINGLE if name in self.columns and name not in (columns or {})):
            rivals = [name for name in self._spelt(names, column) if names[name] in {name, column}]
            rivals = [name for name in rivals if column != "answer" or name not in objects]
            if len({folded(name).removesuffix("s") for name in rivals}) < 2 or not _UNAMBIGUOUS.get(
                column, set()
            ).isdisjoint(rivals):
                continue
            which = f"{_NUMBERS.get(len(rivals), len(rivals))} columns may be {_SINGLE[column]}: {shortened(rivals)}"
            if columns is None:
                return f"{which}; rename one, or leave it out"
            how = "" if self.option else f", or columns: {{{column}: NAME}}"
            gold = "; the gold answer is 'reference'" if column == "answer" else ""
            return f"{which}; say --column {column}=NAME{how}{gold}"
        return None

    def _spelt(self, names: Iterable[str], column: str) -> list[str]:
        looks = {folded(spelling) for spelling in (column, *self.spellings(column))}
        return [name for name in names if folded(name) in looks]
