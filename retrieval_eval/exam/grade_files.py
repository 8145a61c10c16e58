"""Reads and writes grades: tables ``qid, did, item, grade[, answer, llm, prompt]``, or files of the workbench.

Files of the Rubric-Grading Workbench have one line per query, ``[query_id, [paragraph, ...]]`` (001, Figure 4), and are
often ``.gz``. A file that was read can be written again byte for byte. Adding grades to it leaves the text of all other
values unchanged: numbers, spacing inside values, and unknown fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from judges.errors import DataError
from retrieval_eval.data.files import first_line, open_replacing, read_lines
from retrieval_eval.data.rows import Row
from retrieval_eval.data.table_spec import TableSpec, say_count, spellings
from retrieval_eval.data.tables import write_rows
from retrieval_eval.exam.grades import HIGHEST_GRADE, Grade, Graded, Grader

_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class GradedQuery(Struct, frozen=True):
    """One query of a Rubric-Grading Workbench file, with its passages and their grades.

    Attributes:
        line: line number, from 1.
        paragraphs: the query's passages, each with ``paragraph_id``, ``text`` and the file's other fields.
        raw: the JSON text of the record.
    """

    path: Path
    line: int
    query_id: str
    paragraphs: Sequence[Mapping[str, Any]]
    raw: str

    def error(self, problem: str, value: object = None) -> DataError:
        """Make an error about this query that names the file, line and query; the caller raises it."""
        shown = None if value is None else value if isinstance(value, str) else json.dumps(value)
        return DataError(self.path, f"query {self.query_id!r}: {problem}", line=self.line, value=shown)

    def with_grades(self, entries: Mapping[str, Mapping[str, Any]]) -> GradedQuery:
        """A copy with each of ``entries`` (by paragraph_id) added to its paragraph's list ``exam_grades``."""
        texts = [
            _appended(text, "exam_grades", json.dumps(entries[paragraph["paragraph_id"]], ensure_ascii=False))
            if paragraph["paragraph_id"] in entries
            else text
            for paragraph, text in zip(self.paragraphs, _elements(_elements(self.raw)[1]), strict=True)
        ]
        raw = f"[{_elements(self.raw)[0]}, [{', '.join(texts)}]]"
        return GradedQuery(self.path, self.line, self.query_id, json.loads(raw)[1], raw)


def new_query(query_id: str, paragraphs: Sequence[Mapping[str, Any]]) -> GradedQuery:
    return GradedQuery(Path(), 0, query_id, paragraphs, json.dumps([query_id, paragraphs], ensure_ascii=False))


def read_workbench(path: Path | str) -> Iterator[GradedQuery]:
    """Stream the queries of a Rubric-Grading Workbench file. Old files may have several queries on a line.

    Raises:
        DataError: the file cannot be read, a line is not ``[query_id, [paragraph, ...]]``, or a paragraph has no id or
            no text; raised during iteration.
    """
    path, count = Path(path), 0
    for number, line in read_lines(path):
        for value, raw in _records(path, number, line):
            count += 1
            yield _query(path, number, value, raw)
    if not count:
        raise DataError(path, "the file has no queries; write one line [query_id, [paragraph, ...]] for each query")


def write_workbench(path: Path | str, queries: Iterable[GradedQuery]) -> int:
    """Write one query per line and return the number of queries; the workbench reads only files that end in ``.gz``."""
    count = 0
    with open_replacing(path) as file:
        for count, query in enumerate(queries, start=1):  # noqa: B007 - the last number is returned
            file.write(query.raw.encode() + b"\n")
    return count


def is_workbench(path: Path | str) -> bool:
    """Whether a file is from the Rubric-Grading Workbench: its first line that is not blank begins with ``[``."""
    return first_line(Path(path)).lstrip().startswith("[")


def _records(path: Path, number: int, line: str) -> Iterator[tuple[Any, str]]:
    start = _skip(line, 0)
    while start < len(line):
        try:
            value, end = _DECODER.raw_decode(line, start)
        except (ValueError, RecursionError) as error:
            torn = "" if line.endswith(("\n", "\r")) else "; the file seems to be cut off here"
            raise DataError(path, f"not JSON: {error}{torn}", line=number, value=line[start:].strip()) from error
        yield value, line[start:end]
        start = _skip(line, end)


def _query(path: Path, line: int, value: Any, raw: str) -> GradedQuery:
    match value:
        case [str(query_id), list(paragraphs)]:
            query = GradedQuery(path, line, query_id, paragraphs, raw)
        case _:
            raise DataError(path, "the line must have the form [query_id, [paragraph, ...]]", line=line, value=raw)
    for paragraph in paragraphs:
        if not isinstance(paragraph, dict):
            raise query.error("a paragraph must be a JSON object", paragraph)
        for name in ("paragraph_id", "text"):
            if not isinstance(paragraph.get(name), str):
                raise query.error(f"{name!r} of a paragraph must be a text", paragraph.get(name))
    return query


def _elements(raw: str) -> list[str]:
    elements, at = [], _skip(raw, 1)
    while raw[at] != "]":
        _, end = _DECODER.raw_decode(raw, at)
        elements.append(raw[at:end])
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at
    return elements


def _appended(raw: str, key: str, element: str) -> str:
    """A JSON object's text with ``element`` added to its array ``key``; creates the array if it is absent or null."""
    at = _skip(raw, 1)
    while raw[at] != "}":
        name, end = _DECODER.raw_decode(raw, at)
        start = _skip(raw, _skip(raw, end) + 1)
        value, end = _DECODER.raw_decode(raw, start)
        if name == key:
            array = f"[{element}]" if not value else f"{raw[start : end - 1].rstrip()}, {element}]"
            return raw[:start] + array + raw[end:]
        at = _skip(raw, end)
        at = _skip(raw, at + 1) if raw[at] == "," else at
    return f'{raw[:at].rstrip()}, "{key}": [{element}]{raw[at:]}'


def _skip(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def read_workbench_grades(path: Path) -> Graded:
    """Read the grades, passages, rankings and labels of a Rubric-Grading Workbench file.

    Raises:
        DataError: the file cannot be read, or a grade is invalid or repeated; names the file, line and value.
    """
    reader = _Reader()
    for query in read_workbench(path):
        try:
            reader.add(query)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise query.error("the data or grades of a paragraph do not have the workbench's form") from error
    graded = reader.result()
    say_count([path], grades=sum(map(len, graded.grades.values())), graders=len(graded.grades))
    return graded


def workbench_entries(
    graded: Graded, grader: Grader, grades: Iterable[Grade], *, tau: int
) -> dict[str, dict[str, Any]]:
    """One grader's grades on one query, by passage_id, in the form of ``exam_grades`` in a workbench file.

    ``graded`` names the graders that rate on a scale and the items that are nuggets. Ratings of at least ``tau`` count
    as correct answers.
    """
    by_passage: dict[str, list[Grade]] = {}
    for entry in grades:
        by_passage.setdefault(entry.passage_id, []).append(entry)
    return {passage: _entry(graded, grader, entries, tau) for passage, entries in by_passage.items()}


def to_workbench(graded: Graded, *, tau: int) -> Iterator[GradedQuery]:
    ranked: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (query_id, agent), passages in graded.rankings.items():
        for rank, passage in enumerate(passages, start=1):
            entry = {"method": agent, "paragraphId": passage, "queryId": query_id, "rank": rank, "score": 1 / rank}
            ranked.setdefault((query_id, passage), []).append(entry)
    by_query: dict[str, list[tuple[Grader, list[Grade]]]] = {}
    for grader, entries in graded.grades.items():
        grader_queries: dict[str, list[Grade]] = {}
        for grade in entries:
            grader_queries.setdefault(grade.query_id, []).append(grade)
        for query_id, query_grades in grader_queries.items():
            by_query.setdefault(query_id, []).append((grader, query_grades))
    for query_id, texts in graded.passages.items():
        query = new_query(query_id, [_new_paragraph(graded, ranked, query_id, *passage) for passage in texts.items()])
        for grader, entries in by_query.get(query_id, []):
            query = query.with_grades(workbench_entries(graded, grader, entries, tau=tau))
        yield query


def _new_paragraph(
    graded: Graded, ranked: Mapping[tuple[str, str], list[dict[str, Any]]], query_id: str, passage_id: str, text: str
) -> dict[str, Any]:
    label = graded.labels.get(query_id, {}).get(passage_id)
    judgment = {"paragraphId": passage_id, "query": query_id, "relevance": label, "titleQuery": query_id}
    return {
        "paragraph_id": passage_id,
        "text": text,
        "paragraph": None,
        "paragraph_data": {
            "judgments": [] if label is None else [judgment],
            "rankings": ranked.get((query_id, passage_id), []),
        },
        "exam_grades": None,
        "grades": None,
    }


def _entry(graded: Graded, grader: Grader, entries: Sequence[Grade], tau: int) -> dict[str, Any]:
    rated = grader in graded.rated
    threshold = tau if rated else 1
    graded_entries = [entry for entry in entries if entry.grade is not None]
    right = [entry.item_id for entry in graded_entries if entry.grade is not None and entry.grade >= threshold]
    wrong = [entry.item_id for entry in graded_entries if entry.grade is not None and entry.grade < threshold]
    ratings = [
        {("nugget_id" if entry.item_id in graded.nuggets else "question_id"): entry.item_id, "self_rating": entry.grade}
        for entry in graded_entries
    ]
    return {
        "correctAnswered": right,
        "wrongAnswered": wrong,
        "answers": [[entry.item_id, entry.answer] for entry in entries],
        "llm": grader.llm,
        "llm_options": {},
        "exam_ratio": len(right) / len(graded_entries) if graded_entries else 0.0,
        "prompt_info": {"prompt_class": grader.prompt, "is_self_rated": rated},
        "self_ratings": ratings if rated else None,
    }


class _Reader:
    def __init__(self) -> None:
        self.grades: dict[Grader, dict[tuple[str, str, str], Grade]] = {}
        self.rated: set[Grader] = set()
        self.nuggets: set[str] = set()
        self.passages: dict[str, dict[str, str]] = {}
        self.labels: dict[str, dict[str, int]] = {}
        self.direct: dict[Grader, dict[str, dict[str, int]]] = {}
        self.ranked: dict[tuple[str, str], list[tuple[int, int, str]]] = {}

    def add(self, query: GradedQuery) -> None:
        texts = self.passages.setdefault(query.query_id, {})
        for paragraph in query.paragraphs:
            passage_id = paragraph["paragraph_id"]
            if texts.setdefault(passage_id, paragraph["text"]) != paragraph["text"]:
                raise query.error("a paragraph occurs twice with different texts", passage_id)
            data = paragraph.get("paragraph_data") or {}
            for ranking in data.get("rankings") or ():
                agent, rank = _text(query, ranking, "method"), _number(query, ranking, "rank")
                places = self.ranked.setdefault((query.query_id, agent), [])
                places.append((rank, len(places), passage_id))
            for judgment in data.get("judgments") or ():
                label, known = _number(query, judgment, "relevance"), self.labels.setdefault(query.query_id, {})
                known[passage_id] = max(label, known.get(passage_id, label))
            for entry in paragraph.get("exam_grades") or ():
                self._add_grades(query, passage_id, entry)
            for entry in paragraph.get("grades") or ():
                rating = entry.get("self_ratings")
                label = int(bool(entry.get("correctAnswered"))) if rating is None else _whole(query, rating)
                self.direct.setdefault(_grader(entry), {}).setdefault(query.query_id, {})[passage_id] = label

    def _add_grades(self, query: GradedQuery, passage_id: str, entry: Mapping[str, Any]) -> None:
        grader = _grader(entry)
        ratings = entry.get("self_ratings")
        item_grades: dict[str, int | None] = {}
        if ratings is not None:
            self.rated.add(grader)
            for rating in ratings:
                name = "question_id" if rating.get("question_id") is not None else "nugget_id"
                if name == "nugget_id":
                    self.nuggets.add(_text(query, rating, name))
                item_grades[_text(query, rating, name)] = _whole(query, rating.get("self_rating"))
        else:
            item_grades |= dict.fromkeys(entry.get("wrongAnswered") or (), 0)
            item_grades |= dict.fromkeys(entry.get("correctAnswered") or (), 1)
        answers = dict(entry.get("answers") or ())
        grader_grades = self.grades.setdefault(grader, {})
        for item_id in dict.fromkeys([*item_grades, *answers]):
            grade = Grade(query.query_id, passage_id, item_id, item_grades.get(item_id), answers.get(item_id) or "")
            if grader_grades.setdefault(grade[:3], grade).grade != grade.grade:
                raise query.error(f"{grader} gave paragraph {passage_id!r} two different grades for one item", item_id)

    def result(self) -> Graded:
        return Graded(
            {grader: list(entries.values()) for grader, entries in self.grades.items()},
            frozenset(self.rated),
            self.passages,
            {key: tuple(dict.fromkeys(place[2] for place in sorted(places))) for key, places in self.ranked.items()},
            self.labels,
            self.direct,
            frozenset(self.nuggets),
        )


def _grader(entry: Mapping[str, Any]) -> Grader:
    info = entry.get("prompt_info") or {}
    return Grader(str(entry.get("llm") or ""), str(info.get("prompt_class") or ""))


def _text(query: GradedQuery, record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise query.error(f"{name!r} must be a text", value)
    return value


def _number(query: GradedQuery, record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise query.error(f"{name!r} must be a whole number", value)
    return value


def _whole(query: GradedQuery, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= HIGHEST_GRADE:
        raise query.error(f"a grade must be a whole number from 0 to {HIGHEST_GRADE}", value)
    return value


GRADE_COLUMNS = ("qid", "did", "item", "grade", "answer", "llm", "prompt")
GRADES: Final = TableSpec(
    ("item", "qid", "did", "grade", "llm", "prompt", "answer"),
    ("qid", "did", "item", "grade"),
    {"did": (*spellings("did"), "passage")},
)


def read_graded(path: Path | str) -> Graded:
    """Read grades from a table or a workbench file; an empty cell of a table is a missing grade and not a 0."""
    path = Path(path)
    if path.name.removesuffix(".gz").endswith((".jsonl", ".json")) and is_workbench(path):
        return read_workbench_grades(path)
    return _read_table(path)


def write_grades(path: Path | str, graded: Graded) -> int:
    """Write a table of grades and return its number of rows."""
    rows = [
        {
            "qid": entry.query_id,
            "did": entry.passage_id,
            "item": entry.item_id,
            "grade": entry.grade,
            "answer": entry.answer,
            "llm": grader.llm,
            "prompt": grader.prompt,
        }
        for grader, entries in graded.grades.items()
        for entry in entries
    ]
    write_rows(path, GRADE_COLUMNS, rows)
    return len(rows)


def _read_table(path: Path) -> Graded:
    grades: dict[Grader, list[Grade]] = {}
    rated: set[Grader] = set()
    seen: dict[tuple[str, ...], int] = {}
    reading = GRADES.report()
    for row in reading.through(GRADES.rows(path)):
        grader = Grader(row.text("llm"), row.text("prompt"))
        entry = Grade(
            row.identifier("qid"), row.identifier("did"), row.identifier("item"), _cell_grade(row), row.text("answer")
        )
        if (other := seen.setdefault((*grader, *entry[:3]), row.line)) != row.line:
            raise row.error(f"this passage and item already have a grade on line {other}", " ".join(entry[:3]))
        if entry.grade is not None and entry.grade > 1:
            rated.add(grader)
        grades.setdefault(grader, []).append(entry)
    reading.say(f"grades: {len(seen):,}, graders: {len(grades):,}")
    nonempty = {
        grader: entries
        for grader, entries in grades.items()
        if any(entry.grade is not None or entry.answer for entry in entries)
    }
    return Graded(nonempty, frozenset(rated))


def _cell_grade(row: Row) -> int | None:
    text = re.sub(r"(?<=[0-9])\.0$", "", row.text("grade").strip())  # pandas writes 3.0 for 3 in a column with gaps
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= HIGHEST_GRADE):
        raise row.error(f"a grade must be a whole number from 0 to {HIGHEST_GRADE}", text)
    return int(text)
