"""Grades in the files of the Rubric-Grading Workbench: read into grades, and written from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrieval_eval.exam.grades import HIGHEST_GRADE, Grade, Graded, Grader
from retrieval_eval.exam.workbench import GradedQuery, new_query, read_workbench


def read_workbench_grades(path: Path) -> Graded:
    """What a workbench file says: grades, passages, rankings and labels.

    Raises:
        DataError: the file cannot be read, or a grade is wrong or stands there twice; names file, line and value.
    """
    reader = _Reader()
    for query in read_workbench(path):
        try:
            reader.add(query)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise query.error("a paragraph's data or grades do not have the workbench's shape") from error
    return reader.result()


def workbench_entries(
    graded: Graded, grader: Grader, grades: Iterable[Grade], *, tau: int
) -> dict[str, dict[str, Any]]:
    """Some grades of one query as entries of ``exam_grades`` by passage_id.

    Args:
        graded: says whether the grader rates, or gives 1 for right and 0 for wrong, and which items are nuggets.
        grader: who gave the grades.
        grades: of one query.
        tau: the lowest rating that counts as correctly answered.
    """
    by_passage: dict[str, list[Grade]] = {}
    for entry in grades:
        by_passage.setdefault(entry.passage_id, []).append(entry)
    return {passage: _entry(graded, grader, entries, tau) for passage, entries in by_passage.items()}


def to_workbench(graded: Graded, *, tau: int) -> Iterator[GradedQuery]:
    """Everything as the workbench's queries: passages, rankings, labels and all grades."""
    ranked: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (query_id, agent), passages in graded.rankings.items():
        for rank, passage in enumerate(passages, start=1):
            entry = {"method": agent, "paragraphId": passage, "queryId": query_id, "rank": rank, "score": 1 / rank}
            ranked.setdefault((query_id, passage), []).append(entry)
    by_query: dict[str, list[tuple[Grader, list[Grade]]]] = {}
    for grader, entries in graded.grades.items():
        own: dict[str, list[Grade]] = {}
        for grade in entries:
            own.setdefault(grade.query_id, []).append(grade)
        for query_id, some in own.items():
            by_query.setdefault(query_id, []).append((grader, some))
    for query_id, passages_ in graded.passages.items():
        query = new_query(query_id, [_paragraph(graded, ranked, query_id, *named) for named in passages_.items()])
        for grader, entries in by_query.get(query_id, []):
            query = query.with_grades(workbench_entries(graded, grader, entries, tau=tau))
        yield query


def _paragraph(
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
    least = tau if rated else 1
    known = [entry for entry in entries if entry.grade is not None]
    right = [entry.item_id for entry in known if entry.grade is not None and entry.grade >= least]
    wrong = [entry.item_id for entry in known if entry.grade is not None and entry.grade < least]
    ratings = [
        {("nugget_id" if entry.item_id in graded.nuggets else "question_id"): entry.item_id, "self_rating": entry.grade}
        for entry in known
    ]
    return {
        "correctAnswered": right,
        "wrongAnswered": wrong,
        "answers": [[entry.item_id, entry.answer] for entry in entries],
        "llm": grader.llm,
        "llm_options": {},
        "exam_ratio": len(right) / len(known) if known else 0.0,
        "prompt_info": {"prompt_class": grader.prompt, "is_self_rated": rated},
        "self_ratings": ratings if rated else None,
    }


class _Reader:
    """Gathers what the queries of a workbench file say."""

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
                raise query.error("a paragraph stands there twice, with different texts", passage_id)
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
        found: dict[str, int | None] = {}
        if ratings is not None:
            self.rated.add(grader)
            for rating in ratings:
                name = "question_id" if rating.get("question_id") is not None else "nugget_id"
                if name == "nugget_id":
                    self.nuggets.add(_text(query, rating, name))
                found[_text(query, rating, name)] = _whole(query, rating.get("self_rating"))
        else:
            found |= dict.fromkeys(entry.get("wrongAnswered") or (), 0)
            found |= dict.fromkeys(entry.get("correctAnswered") or (), 1)
        answers = dict(entry.get("answers") or ())
        known = self.grades.setdefault(grader, {})
        for item_id in dict.fromkeys([*found, *answers]):
            grade = Grade(query.query_id, passage_id, item_id, found.get(item_id), answers.get(item_id) or "")
            if known.setdefault(grade[:3], grade).grade != grade.grade:
                raise query.error(f"{grader} graded paragraph {passage_id!r} twice", item_id)

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
        raise query.error(f"{name!r} is not a text", value)
    return value


def _number(query: GradedQuery, record: Mapping[str, Any], name: str) -> int:
    value = record.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise query.error(f"{name!r} is not a whole number", value)
    return value


def _whole(query: GradedQuery, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= HIGHEST_GRADE:
        raise query.error("a grade is a whole number from 0", value)
    return value
