"""Synthetic queries: models write queries about passages; filters, quotas and a review select some of them.

A random sample takes the first items in the order of a hash of seed and item id. So it has no repetitions and does
not depend on the input's order, and adding or removing an item leaves the order of the other items unchanged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from arena.config.schema import UNANSWERABLE, FiltersSection, SynthSection
from arena.data.corpus import CorpusReading, read_passages
from arena.stages.base import Stage
from arena.stages.queries_config import SynthConfig
from arena.store import Result, Store, Wanted
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.errors import DataError, InputError
from judges.prompts import PromptTemplate, load_prompt
from judges.prompts.tasks import answerable_prompt, queries_prompt
from judges.types import Document, Judgment, Prompt, Query, Task
from retrieval_eval.agents.ranking import Bm25Index, Corpus
from retrieval_eval.data.collections import topic_rows
from retrieval_eval.data.files import first_line, read_lines
from retrieval_eval.data.rows import Cell, Row, known_format
from retrieval_eval.data.table_spec import TableSpec
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.documents.passages import NearDuplicates

TRUE, FALSE = "true", "false"
"""Values of the column ``answerable``."""
_UNANSWERED: Final = "unanswered"
"""Value of ``Wanted.other`` for queries that the documents are not to answer."""
_TO_COME = "a query of as many words as people need to ask for what they want to know"
"""Placeholder query for plans, which put a model's name and a number before it so that all queries differ."""


class QueriesStage(Stage):
    """Makes models write queries about passages, and a judge check whether the passages answer them.

    ``after`` only records results. Which queries to check depends on all results together, so the caller calls
    ``next_checks`` once no judgment is in progress.

    Args:
        reading: receives counts of the documents read.

    Attributes:
        passages: the sampled passages, by id.
        candidates: the written queries in random order; empty until all are written.

    Raises:
        InputError: documents, examples or prompts cannot be used, or no document has text.
    """

    leading = (Task.QUERIES, Task.ANSWERABLE)

    def __init__(self, config: SynthConfig, reading: CorpusReading) -> None:
        section = config.synth
        self.config = config
        self.examples = read_examples(section.examples)
        read = list(read_passages(section.documents, section.passages, section.limits, reading))
        sampled = sampled_passages(read, section.sample.passages, section.sample.seed)
        self.passages = {passage.doc_id: passage for passage in sampled}
        self._all = read
        self.templates = {
            Task.QUERIES: load_prompt(section.prompt, Task.QUERIES),
            Task.ANSWERABLE: load_prompt(section.filters.prompt, Task.ANSWERABLE),
        }
        self._unanswered = None
        if (unanswered := section.unanswerable) is not None:
            self._unanswered = (
                load_prompt(unanswered.prompt, Task.QUERIES),
                load_prompt(unanswered.check_prompt, Task.ANSWERABLE),
            )
        self.candidates: list[Candidate] = []
        self._by_id: dict[str, Candidate] = {}
        self._written: dict[Wanted, Result] = {}
        self._checked: dict[str, Result | None] = {}

    def wants(self) -> list[Wanted]:
        section = self.config.synth
        models, unanswered = section.models, section.unanswerable
        wants = [Wanted(Task.QUERIES, model, passage, "") for passage in self.passages for model in models]
        beside = islice(self.passages, 0 if unanswered is None else unanswered.number)
        return [
            *wants,
            *(Wanted(Task.QUERIES, model, passage, "", _UNANSWERED) for passage in beside for model in models),
        ]

    def prompt(self, want: Wanted) -> Prompt:
        if want.task is Task.ANSWERABLE:
            asked = self._by_id[want.query_id]
            query = Query(asked.query_id, asked.text)
            if asked.answerable == FALSE:
                return answerable_prompt(self._template(want), query, self._nearest(asked))
            return answerable_prompt(self._template(want), query, [asked.passage])
        section, passage = self.config.synth, self.passages[want.query_id]
        shown = drawn(self.examples, section.sample.seed, lambda text: f"{passage.doc_id}\0{text}")[: section.shots]
        return queries_prompt(self._template(want), passage, section.per_passage, shown)

    def _template(self, want: Wanted) -> PromptTemplate:
        if want.other != _UNANSWERED:
            return self.templates[want.task]
        assert self._unanswered is not None
        return self._unanswered[want.task is Task.ANSWERABLE]

    def _nearest(self, asked: Candidate) -> list[Document]:
        """The passages that are nearest to a query, and the one it was written about first."""
        assert self.config.synth.unanswerable is not None
        found = (hit.document for hit in self._index.find(asked.text, self.config.synth.unanswerable.documents))
        return list({passage.doc_id: passage for passage in (asked.passage, *found)}.values())

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index(Corpus.of(self._all).documents)

    def after(self, want: Wanted, result: Result) -> Sequence[Wanted]:
        """Record the result; leads to no further judgment, see ``next_checks``."""
        if want.task is Task.QUERIES:
            self._written[want] = result
        else:
            self._checked[want.query_id] = result
        return ()

    def next_checks(self) -> list[Wanted]:
        """The next queries to check, once no judgment is in progress; empty if no check is needed any more."""
        section = self.config.synth
        if not self.candidates:
            self.candidates = self._drawn()
            self._by_id = {each.query_id: each for each in self.candidates}
        answered = {query_id: _answers(result) for query_id, result in self._checked.items()}
        wants: list[Wanted] = []
        if (judge := section.filters.answerable) is not None:
            candidates = [each for each in self.candidates if each.answerable != FALSE]
            asked = to_be_checked(candidates, section.quotas, answered)
            wants = [Wanted(Task.ANSWERABLE, judge, each.query_id, each.passage.doc_id) for each in asked]
        if not wants and (unanswered := section.unanswerable) is not None:
            left = {query_id: None if answers is None else not answers for query_id, answers in answered.items()}
            near = [replace(each, generator="") for each in self.candidates if each.answerable == FALSE]
            asked = to_be_checked(near, {"": unanswered.number}, left)
            wants = [
                Wanted(Task.ANSWERABLE, unanswered.judge, each.query_id, each.passage.doc_id, _UNANSWERED)
                for each in asked
            ]
        self._checked |= {want.query_id: None for want in wants}
        return wants

    def _drawn(self) -> list[Candidate]:
        section = self.config.synth
        written: list[Candidate] = []
        to_come: list[Candidate] = []
        for want, result in self._written.items():
            if isinstance(result, Judgment) and isinstance(result.outcome, tuple):
                passage = self.passages[want.query_id]
                template, answerable = self._template(want), ""
                if section.unanswerable is not None:
                    answerable = FALSE if want.other == _UNANSWERED else TRUE
                prompt = f"{template.name}@{template.version}"
                batch = [
                    candidate(text, passage, (want.judge, result.model), prompt, answerable) for text in result.outcome
                ]
                (written if result.judgment_id else to_come).extend(batch)
        marked = filtered(written, self.examples, section.sample.seed, section.filters)
        return drawn([*marked, *to_come], section.sample.seed, lambda each: each.query_id)

    def checked(self) -> list[Candidate]:
        return [self._judged(each) if each.query_id in self._checked else each for each in self.candidates]

    def _judged(self, each: Candidate) -> Candidate:
        result = self._checked[each.query_id]
        if (answers := _answers(result)) is None:
            return each.without("unchecked", _detail(result))
        if each.answerable == FALSE:
            return each.without("answered", _detail(result)) if answers else each
        return each if answers else each.without("unanswerable", _detail(result))

    def stand_in(self, want: Wanted, _prompt: Prompt) -> Result:
        outcome: Any = 1
        if want.task is Task.ANSWERABLE and want.other == _UNANSWERED:
            outcome = 0
        if want.task is Task.QUERIES:
            outcome = tuple(
                f"{want.judge} {want.other}{number}: {_TO_COME}" for number in range(self.config.synth.per_passage)
            )
        return Judgment("", outcome, "", "", "", calls=0)

    def settings(self) -> dict[str, Any]:
        """The settings that determine the models' replies, as the store keeps them: no paths, no secrets."""
        include = {"models", "per_passage", "shots", "sample", "passages"}
        kept = self.config.synth.model_dump(mode="json", include=include)
        templates = [*self.templates.values(), *(self._unanswered or ())]
        return {"synth": {**kept, "prompts": {each.name: each.digest for each in templates}}}


def _answers(result: Result | None) -> bool | None:
    return result.outcome == 1 if isinstance(result, Judgment) else None


def _detail(result: Result | None) -> str:
    if isinstance(result, Judgment):
        return result.reason
    return "not asked" if result is None else f"{result.cause}: {result.message}"


Item = TypeVar("Item")
QueryT = TypeVar("QueryT", bound="Candidate | WrittenQuery")

_NOT_LETTERS = re.compile(r"[\W_]+")
_SOURCE = r"(?:passage|text|document|excerpt|extract|paragraph|section|chapter|table|figure|page|article)"
_POINTS_AT_SOURCE = re.compile(
    rf"\b(?:(?:according to|based on|in|from|by|of) (?:the|this)(?: (?:above|given|provided|following))? {_SOURCE}s?"
    rf"|(?:the|this|these) (?:above|given|provided|following) {_SOURCE}s?"
    rf"|(?:mentioned|described|listed|shown|given|discussed) (?:above|below|here|in (?:the|this) {_SOURCE}s?)"
    rf"|does (?:the|this) {_SOURCE} (?:say|mention|describe|list|state|suggest|recommend))\b",
    re.IGNORECASE,
)

REASONS: Mapping[str, str] = {
    "source": "speaks of its source, which a user does not see",
    "example": "repeats an example",
    "duplicate": "the same as another query",
    "near_duplicate": "nearly the same as another query",
    "unanswerable": "the passage does not answer it",
    "answered": "the documents answer it, and it is to have no answer",
    "unchecked": "whether the passage answers it is not known: a judgment failed or is missing",
    "rejected": "rejected by a person",
}
"""Reasons for dropping a written query, each with the phrase in reports and review files."""


class Candidate(Struct, frozen=True):
    """A query that a model wrote, which may be selected or dropped.

    Attributes:
        query_id: a hash of model, passage and text.
        dropped: a key of ``REASONS``; empty if the query is not dropped.
        detail: the other query that this one repeats, or the judge's reason.
        answerable: whether the documents are to answer it, ``true`` or ``false``; empty if all queries are to have one.
    """

    query_id: str
    text: str
    passage: Document
    generator: str
    model: str
    prompt: str
    dropped: str = ""
    detail: str = ""
    answerable: str = ""

    def without(self, reason: str, detail: str = "") -> Candidate:
        return replace(self, dropped=reason, detail=detail)


def candidate(text: str, passage: Document, writer: tuple[str, str], prompt: str, answerable: str = "") -> Candidate:
    """A query as its ``writer``, a judge and its model, wrote it."""
    (generator, model), plain = writer, " ".join(text.split())
    parts = (generator, passage.doc_id, plain, *([FALSE] if answerable == FALSE else []))
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()
    return Candidate(f"sq-{digest[:12]}", plain, passage, generator, model, prompt, answerable=answerable)


def filtered(
    candidates: Iterable[Candidate], examples: Sequence[str], seed: int, filters: FiltersSection
) -> list[Candidate]:
    """All candidate queries in random order; unusable ones are marked with the reason for dropping them.

    Of several equal queries, the first is kept. As the order is random, no model is favoured, and the order in which
    replies arrived makes no difference.
    """
    seen: dict[str, str] = {}
    example_letters = {_letters(text) for text in examples}
    near_duplicates = (
        NearDuplicates(filters.near_duplicates, shingle=1, same_numbers=True) if filters.near_duplicates else None
    )
    unique = {each.query_id: each for each in candidates}
    return [
        _judged(each, seen, example_letters, near_duplicates, filters)
        for each in drawn(unique.values(), seed, lambda each: each.query_id)
    ]


def _judged(
    each: Candidate,
    seen: dict[str, str],
    example_letters: set[str],
    near_duplicates: NearDuplicates | None,
    filters: FiltersSection,
) -> Candidate:
    letters = _letters(each.text)
    if filters.mentions_source and _POINTS_AT_SOURCE.search(each.text):
        return each.without("source")
    if letters in example_letters:
        return each.without("example")
    if letters in seen:
        return each.without("duplicate", seen[letters])
    if near_duplicates is not None and (twin := near_duplicates.twin(each.query_id, each.text)) is not None:
        return each.without("near_duplicate", f"{twin.kept} ({twin.similarity:.2f})")
    seen[letters] = each.query_id
    return each


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", text).casefold()


def to_be_checked(
    candidates: Sequence[Candidate], quotas: Mapping[str, int], checked: Mapping[str, bool | None]
) -> Iterator[Candidate]:
    """The candidate queries that a judge must check next to fill the quotas.

    Args:
        quotas: number of queries to select from each model; if empty, all candidates are checked.
        checked: by query_id, whether the passage answers the query; ``None`` if the check failed.
    """
    places = dict(quotas)
    for each in candidates:
        if each.dropped or checked.get(each.query_id, True) is not True:
            continue
        if quotas and places.get(each.generator, 0) == 0:
            continue
        places[each.generator] = places.get(each.generator, 1) - 1
        if each.query_id not in checked:
            yield each


def drawn(items: Iterable[Item], seed: int, ident: Callable[[Item], str]) -> list[Item]:
    """All items in a random order that depends only on the seed and the items' ids."""

    def place(item: Item) -> tuple[str, str]:
        return hashlib.sha256(f"{seed}\0{ident(item)}".encode()).hexdigest(), ident(item)

    return sorted(items, key=place)


def group_of(query: Candidate | WrittenQuery) -> str:
    """``UNANSWERABLE`` for a query that the documents do not answer; for others, the model that wrote it."""
    answerable = query.answerable if isinstance(query, Candidate) else query.provenance.get("answerable", "")
    return UNANSWERABLE if answerable == FALSE else query.generator


def chosen(queries: Sequence[QueryT], section: SynthSection) -> list[QueryT]:
    """The queries for the file: those that fill the models' quotas, then those that the documents do not answer."""
    near = [query for query in queries if group_of(query) == UNANSWERABLE]
    others = [query for query in queries if group_of(query) != UNANSWERABLE]
    number = len(near) if section.unanswerable is None else section.unanswerable.number
    return [*by_quota(others, section.quotas, group_of), *near[:number]]


def by_quota(items: Iterable[Item], quotas: Mapping[str, int], group: Callable[[Item], str]) -> list[Item]:
    """The first items of each group, as many as its quota, in input order; all items if there are no quotas.

    A group smaller than its quota is returned complete; the caller reports what is missing.
    """
    if not quotas:
        return list(items)
    left = dict(quotas)
    taken = []
    for item in items:
        if left.get(group(item), 0) > 0:
            left[group(item)] -= 1
            taken.append(item)
    return taken


def sampled_passages(passages: Iterable[Document], number: int | None, seed: int) -> list[Document]:
    """A random sample of ``number`` passages in random order; all of them if ``number`` is ``None``."""
    ordered = drawn(passages, seed, lambda passage: passage.doc_id)
    if not ordered:
        raise InputError("no document has any text; 'ragleague documents' lists what was skipped and why")
    return ordered[:number]


PROVENANCE = ("generator", "model", "passage", "source", "title", "page", "prompt", "seed", "answerable")
QUERIES = ("qid", "query", *PROVENANCE, "decision", "generated")
REVIEW = ("qid", "decision", "query", "generated", "state", "why", *PROVENANCE, "passage_text")
DECISIONS = ("accept", "edit", "reject")


def _are_topics(path: Path) -> bool:
    first = first_line(path)
    return first.lstrip().startswith("<") or "\t" in first.strip()


def read_examples(path: Path | None) -> list[str]:
    """Read experts' example queries: column ``query`` of a table, the texts of TREC topics, or lines of a text file.

    Raises:
        DataError: the file cannot be read, or has no query.
    """
    if path is None:
        return []
    if known_format(path) is None and not _are_topics(path):
        texts = [line.strip() for _, line in read_lines(path)]
        texts = texts[texts[:1] == ["query"] :]
    else:
        texts = [row.text("query").strip() for row in topic_rows(path, ids=False)]
    if not any(texts):
        raise DataError(path, "has no query with text; add example queries, or name another file")
    return list(dict.fromkeys(filter(None, texts)))


class WrittenQuery(Struct, frozen=True):
    query_id: str
    text: str
    generator: str
    provenance: Mapping[str, str]
    decision: str = ""
    generated: str = ""


def written(each: Candidate, seed: int) -> WrittenQuery:
    named = each.passage.metadata
    provenance = {"generator": each.generator, "model": each.model, "passage": each.passage.doc_id}
    provenance |= {name: named.get(name, "") for name in ("source", "title", "page")}
    provenance |= {"prompt": each.prompt, "seed": str(seed), "answerable": each.answerable}
    return WrittenQuery(each.query_id, each.text, each.generator, provenance)


def write_queries(files: WrittenFiles, path: Path, queries: Sequence[WrittenQuery], *, reviewed: bool = False) -> str:
    """Write a file of queries, without columns that would be empty.

    Returns:
        ``written``, or a phrase that says why the file was not changed.
    """
    rows: list[dict[str, Cell]] = []
    for query in queries:
        cells: dict[str, Cell] = {"qid": query.query_id, "query": query.text, **query.provenance}
        rows.append({**cells, "decision": query.decision, "generated": query.generated})
    columns = [name for name in QUERIES if name in ("qid", "query") or any(row[name] for row in rows)]
    return files.replace(path, columns, [{name: row[name] for name in columns} for row in rows], reviewed=reviewed)


def write_review(
    files: WrittenFiles, path: Path, candidates: Sequence[Candidate], chosen: Collection[str], seed: int
) -> str:
    """Write all candidate queries for people to review: first the selected ones, then the others in random order.

    Returns:
        ``written``, or a phrase that says why the file was not changed.

    Raises:
        DataError: the file cannot be written, or its present version cannot be read.
    """
    places = {"chosen": 0, "reserve": 1, "dropped": 2}
    rows = sorted(_review_rows(candidates, chosen, seed), key=lambda row: places[str(row["state"])])
    columns = [name for name in REVIEW if name != "answerable" or any(row[name] for row in rows)]
    outcome = files.replace(path, columns, [{name: row[name] for name in columns} for row in rows])
    if outcome == CHANGED and any(row.text("decision").strip() for row in read_rows(path)):
        return "left as it is, since it holds decisions"
    return outcome


def _review_rows(candidates: Sequence[Candidate], chosen: Collection[str], seed: int) -> Iterator[dict[str, Cell]]:
    for each in candidates:
        state = "dropped" if each.dropped else "chosen" if each.query_id in chosen else "reserve"
        why = ": ".join(filter(None, (REASONS.get(each.dropped, ""), each.detail)))
        row = {"qid": each.query_id, "decision": "", "query": each.text, "generated": each.text, "state": state}
        yield {**row, "why": why, **written(each, seed).provenance, "passage_text": each.passage.text}


REVIEWED: Final = TableSpec(("qid", "query"), ("qid", "decision", "query", "generated", "generator"))


class Reviewed(Struct, frozen=True):
    queries: Sequence[WrittenQuery]
    rejected: Mapping[str, int]
    undecided: int
    generated: Mapping[str, int]


def read_reviewed(path: Path) -> Reviewed:
    """Read a file of queries that people have reviewed; an accepted query is used even if a filter had dropped it.

    Raises:
        DataError: a decision is unknown or contradicts a change of the text, a query occurs twice, or none is accepted.
    """
    queries: list[WrittenQuery] = []
    rejected: dict[str, int] = {}
    generated: dict[str, int] = {}
    undecided = 0
    places: dict[str, str] = {}
    for row in REVIEWED.rows(path):
        query, decision = _written(row), _decision(row)
        generated[query.generator] = generated.get(query.generator, 0) + 1
        if decision == "reject":
            rejected[query.generator] = rejected.get(query.generator, 0) + 1
        elif not decision:
            undecided += 1
        else:
            for what, key in (("query id", query.query_id), ("text", query.text.casefold())):
                if key in places:
                    raise row.error(f"this {what} is accepted in {places[key]} already", key)
                places[key] = row.place
            queries.append(query)
    if not queries:
        raise DataError(path, "accepts no query; write accept or edit into the column 'decision' of the queries to use")
    return Reviewed(queries, rejected, undecided, generated)


def _decision(row: Row) -> str:
    decision = row.text("decision").strip().lower()
    if decision and decision not in DECISIONS:
        raise row.error(f"a decision is one of {', '.join(DECISIONS)}, or empty", decision)
    changed = row.text("query").strip() != row.text("generated").strip()
    if changed and decision == "accept":
        raise row.error("the query was changed; write edit", row.text("query"))
    if not changed and decision == "edit":
        raise row.error(
            "the decision is edit, but the query is unchanged; write accept, or change it", row.text("query")
        )
    if decision in ("accept", "edit") and not row.text("query").strip():
        raise row.error("the query is empty; write reject")
    return decision


def _written(row: Row) -> WrittenQuery:
    provenance = {name: row.text(name) for name in PROVENANCE}
    decision = row.text("decision").strip().lower()
    generated = row.text("generated") if decision == "edit" else ""
    text = " ".join(row.text("query").split())
    return WrittenQuery(row.identifier("qid"), text, row.identifier("generator"), provenance, decision, generated)


_FILES: Final = "files"
_REVIEWED: Final = "reviewed"
WRITTEN: Final = "written"
CHANGED: Final = "left as it is, since people changed it; move it away to have it written anew"
NONE: Final = "not written, since there is no query"
"""Outcome of writing a file, as shown to the user, if there is no query to write."""
_UNREADABLE: Final = "unreadable"
"""Used as the digest of a file that cannot be read; no file that the tool wrote has this digest."""


class WrittenFiles:
    """Writes tables of queries for a tournament, and records a digest of each in the store."""

    def __init__(self, store: Store, tournament: str) -> None:
        self._store, self._tournament = store, tournament

    def replace(
        self, path: Path, columns: Sequence[str], rows: Sequence[dict[str, Cell]], *, reviewed: bool = False
    ) -> str:
        """Write a table over its previous version; returns the outcome as a phrase.

        The tool does not change a file that someone else wrote or changed, or that would become empty. A table with
        ``reviewed`` set contains people's decisions, so that only another such table replaces it.
        """
        present = _content(path)
        if present and not rows:
            return NONE
        with TemporaryDirectory() as folder:  # read back after writing, since a format may be unable to hold some text
            sample = Path(folder) / path.name
            write_rows(sample, columns, rows)
            new = _content(sample)
        place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._store.announce(self._tournament)
        runs = Runs(self._store, self._tournament)
        subjects = (run.subject for run in runs.all())
        written = {subject.get(_FILES, {}).get(place) for subject in subjects if reviewed or not subject.get(_REVIEWED)}
        if present and present == new and present in written:
            return WRITTEN
        if present and present != new and present not in written:
            return CHANGED
        # Record the digest first: an unrecorded file would look as if a person had written it.
        run_id = runs.begin(Runner(), {_FILES: {place: new}, _REVIEWED: reviewed})
        if present != new or not present:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_rows(path, columns, rows)
        runs.end(run_id, "complete", {})
        return WRITTEN


def _content(path: Path) -> str:
    if not path.is_file() or path.stat().st_size == 0:
        return ""
    digest, has_rows = hashlib.sha256(), False
    try:
        for row in read_rows(path, empty=True):
            cells = sorted((name, text) for name in row.values if (text := row.text(name)))
            digest.update(json.dumps(cells).encode())
            has_rows = True
    except DataError:
        return _UNREADABLE
    return digest.hexdigest()[:16] if has_rows else ""
