"""Reads and writes a tournament's tables of queries, documents and answers."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.dataset import COST, LATENCY, SHARED, TOKENS_IN, TOKENS_OUT, TRIED, Dataset
from arena.data.records import (
    ANSWERS,
    PASSAGE_NAMES,
    AnswerRecord,
    RowSource,
    Sources,
    columns_of,
    read_records,
    references_in,
    sources_of,
)
from arena.present.numbers import clipped, counted, listed
from judges.errors import InputError
from judges.sections import nearest, shortened
from judges.types import ANSWERABILITY, Answer, Document, Query, Retrieved, repeat_name, repeat_of
from retrieval_eval.data.collections import TOPICS, topic_rows
from retrieval_eval.data.conversations import (
    earlier_turns,
    note_of_left_out,
    query_id_of,
    with_conversations,
    with_messages,
    with_turns,
)
from retrieval_eval.data.rows import (
    EMPTY,
    Cell,
    Row,
    Rows,
    alike,
    are_floats,
    id_of_text,
    in_form,
    known_format,
    spelling_problem,
)
from retrieval_eval.data.table_spec import OF_DATA, READ, Columns, ColumnsRead, TableSpec, folded, how_to_name, names_of
from retrieval_eval.data.tables import write_rows


def load_dataset(
    queries: Sources = (),
    documents: Sources = (),
    answers: Sources = (),
    *,
    columns: Columns | None = None,
    limit: int | None = None,
    passages: bool = True,
) -> Dataset:
    """Read a dataset from tables, or from other formats: queries from TREC topics, answers from those of other tools.

    Columns: queries ``qid, query`` and optionally ``reference``, the gold answer; documents ``qid, did, document`` and
    optionally ``agent, rank, score``; answers ``qid, agent, answer``, or ``query`` instead of ``qid``, and optionally
    ``passages`` and ``reference``; ``VOCABULARY`` lists other spellings. Every other column with a value (``title``,
    ``website``, ``publish_time``, ...) becomes metadata.

    Defaults: without tables of queries, the queries are taken from the answers; without ids, they are hashes of the
    texts (``id_of_text``); without an agent column, the agent is the file's name; without documents, they are the
    ``passages`` of the answers; without a ``rank`` column, documents are ranked in the order of the file.

    Args:
        queries: tables of queries: files, patterns such as ``*.csv``, or rows in memory.
        documents: tables of retrieved documents, in the same forms as ``queries``.
        answers: tables of answers, in the same forms as ``queries``.
        columns: the name in the tables for a column name of ragleague; ``None`` if the tables have no such column.
        limit: maximum number of queries; keep only the first ones.
        passages: whether the passages in tables of answers are used if there is no table of documents.
    """
    asking, retrieving, answering = map(sources_of, (queries, documents, answers))
    columns = columns or {}
    if columns:
        _require_columns(columns, [*asking, *retrieving, *answering])
    records = list(read_records(answering, columns))
    if not asking:
        records = _with_one_form([_as_turn(record) for record in records])
    ids = not records or any(record.query_id for record in records)
    read, rows = _read_queries(asking, columns, ids=ids) if asking else _queries_of(records)
    earlier, asked = earlier_turns(rows), _Asked(read)
    if not asking:
        _require_shared_ids(records)
    records = [replace(each, query_id=asked.id_of(each.row, each.query_id, each.query)) for each in records]
    failed = [record for record in records if record.failure]
    records, repeats, repeat_notes = _with_repeats([record for record in records if not record.failure])
    answered = _answers_of(records)
    reader = _DocumentReader(asked.id_of, repeats)
    document_columns = DOCUMENTS.report(*_SHOWN_METADATA)
    for row in (row for source in retrieving for row in DOCUMENTS.rows(source, columns)):
        document_columns.add(row)
        reader.add(row)
    notes = [note] if (note := note_of_left_out(rows.values())) else []
    notes += _unread_gold(rows.values()) if asking else []
    notes += repeat_notes
    all_rows = itertools.chain(rows.values(), (record.row for record in records))
    if several := {row.place for row in all_rows if len(references_in(row)) > 1}:
        notes.append(f"{counted(len(several), 'row')} with several gold answers: the first of them counts")
    notes += _notes_of_failures(failed, answered)
    if any(record.passages for record in records):
        if retrieving or not passages:
            notes.append("the passages in the answers' files are not used: data names other documents")
        else:
            for record in records:
                reader.add_passages(record)
    if answered:
        reader.require_answers({repeat_of(agent)[0] for _, agent in answered})
        reader.share_with_repeats(answered)
    read, note = with_conversations(with_turns(_with_answerability(_with_references(read, records), records), earlier))
    notes += [note] if note else []
    data = Dataset(read, reader.documents, answered, reader.retrieved(read), notes=tuple(notes))
    _log_columns(data, rows.values() if asking else (), document_columns, records, to_come=not passages)
    return data if limit is None else _limited(data, limit)


DOCUMENTS: Final = TableSpec(
    ("did", "document", "qid", "query", "agent", "rank", "score", "repeat"), ("document",), kept=True
)
"""Columns of a table of documents; ``did`` comes before ``qid``, so that a column ``id`` is the document's id."""
_FURTHER: Final = ("conversation", "turn", "trace_id", LATENCY, TRIED, COST, TOKENS_IN, TOKENS_OUT)
_SHOWN_METADATA: Final = {"title"}


def _unread_gold(rows: Iterable[Row]) -> list[str]:
    """Notes on tables of queries that have an unused column of answers and no column of gold answers."""
    answer_names = {folded(name) for name in ("answer", *ANSWERS.spellings("answer"))}
    tables = {
        row.path: name
        for row in rows
        if "reference" not in row.called.values()
        for name, ours in row.called.items()
        if name == ours and folded(name) in answer_names
    }
    return [
        f"{path.name}: column {name!r} is not used; if these are the gold answers, call it 'reference'"
        for path, name in tables.items()
    ]


def _log_columns(
    data: Dataset,
    query_rows: Iterable[Row],
    document_columns: ColumnsRead,
    records: Sequence[AnswerRecord],
    *,
    to_come: bool,
) -> None:
    """Log the columns that were read, and the numbers of queries, documents and answers.

    The number of documents is left out if there are none yet and runs will add some (``to_come``).
    """
    query_columns, answer_columns = TOPICS.report(*ANSWERABILITY), ANSWERS.report(*_FURTHER, *ANSWERABILITY)
    for row in query_rows:
        query_columns.add(row)
    query_columns.say(plain=False)
    document_columns.say(plain=False)
    for record in records:
        answer_columns.add(record.row, record.form)
    queries = data.queries.values()
    gold, turns = sum(query.reference is not None for query in queries), sum(bool(query.messages) for query in queries)
    numbers = [
        counted(len(queries), "query", "queries"),
        *([counted(len(data.documents), "document")] if data.documents or not to_come else []),
        counted(len(data.answers), "answer"),
        counted(gold, "gold answer"),
        f"messages before {counted(turns, 'query', 'queries')}",
    ]
    answer_columns.say()
    READ.info("%s", ", ".join(numbers))


def load_files(config: Config) -> Dataset:
    section = config.data
    return load_dataset(
        config.queries(),
        section.documents,
        section.answers,
        columns=section.columns,
        limit=section.limit,
        passages=not section.runs,
    )


def save_dataset(dataset: Dataset, folder: Path | str) -> list[Path]:
    """Write a dataset as ``queries.csv``, ``documents.csv`` and ``answers.csv``; ``load_dataset`` reads it back equal.

    Tables without rows are not written. Returns the paths of the files. Raises ``ValueError`` for a document that was
    retrieved for no query, since every row of the table of documents belongs to a query.
    """
    retrieved = [entry for entries in dataset.retrieved.values() for entry in entries]
    if unused := dataset.documents.keys() - {entry.doc_id for entry in retrieved}:
        raise ValueError(f"documents retrieved for no query cannot be written: {sorted(unused)[:5]}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    agent = () if all(entry.agent == SHARED for entry in retrieved) else ("agent",)
    repeated = dataset.answerers != dataset.agents

    def named(name: str) -> dict[str, Cell]:
        agent_name, repeat = repeat_of(name)
        return {"agent": agent_name, **({"repeat": repeat} if repeated else {})}

    tables: dict[str, tuple[Sequence[str], list[dict[str, Cell]]]] = {
        "queries.csv": (
            ("qid", "query"),
            [{**query.columns, "qid": query.query_id, "query": query.text} for query in dataset.queries.values()],
        ),
        "documents.csv": (
            ("qid", "did", "document", *agent, "rank", "score"),
            [
                _document_row(
                    entry, dataset.documents[entry.doc_id], {} if entry.agent == SHARED else named(entry.agent)
                )
                for entry in retrieved
            ],
        ),
        "answers.csv": (
            ("qid", "agent", "answer"),
            [
                {**answer.metadata, "qid": answer.query_id, **named(answer.agent), "answer": answer.text}
                for answer in dataset.answers.values()
            ],
        ),
    }
    written = []
    for name, (columns, rows) in tables.items():
        if rows:
            extra = sorted({column for row in rows for column in row} - set(columns))
            write_rows(folder / name, [*columns, *extra], rows)
            written.append(folder / name)
    return written


class _DocumentReader:
    """Collects the rows of tables of documents; a row is one document that an agent retrieved for a query."""

    def __init__(self, id_of: Callable[[Row, str, str], str], repeats: Mapping[str, int]) -> None:
        """``repeats`` has the number of each value of the column ``repeat``."""
        self.documents: dict[str, Document] = {}
        self._id_of, self._repeats = id_of, repeats
        self._entries: dict[tuple[str, str, str], Retrieved] = {}
        self._places: dict[tuple[str, ...], str] = {}
        self._length: Counter[tuple[str, str]] = Counter()
        self._agents: dict[str, Row] = {}

    def add(self, row: Row) -> None:
        row_id = row.identifier("qid") if "qid" in row.values else ""
        query_id = self._id_of(row, row_id, row.text("query"))
        doc_id = row.identifier("did") if "did" in row.values else id_of_text("d", row.text("document"))
        agent = row.identifier("agent") if "agent" in row.values else SHARED
        if agent != SHARED and (repeat := row.text("repeat").strip()):
            agent = repeat_name(agent, self._repeats.get(repeat, 1))
        if agent not in self._agents:
            self._agents[agent] = row
            if SHARED in self._agents and len(self._agents) > 1:
                other = next(iter(self._agents.values()))
                raise row.error(f"either all documents name their agent or none does; {other.place} differs")
        self._add_document(row, doc_id)
        self._length[query_id, agent] += 1
        rank = row.rank() if "rank" in row.values else self._length[query_id, agent]
        group = f"for query {query_id!r}" + (f" by {agent!r}" if agent else "")
        key = (query_id, agent)
        self._require_first(
            row, ("retrieved", *key, doc_id), f"document {doc_id!r} was retrieved twice {group}; leave one out"
        )
        self._require_first(row, ("rank", *key, str(rank)), f"two documents have rank {rank} {group}; leave one out")
        self._entries[query_id, doc_id, agent] = Retrieved(query_id, doc_id, agent, rank, row.number("score"))

    def add_passages(self, record: AnswerRecord) -> None:
        for passage in record.passages:
            cells: dict[str, Cell] = {"qid": record.query_id, "did": passage.doc_id, "document": passage.text}
            cells["repeat"] = ""  # the agent's name has it
            self.add(replace(record.row, values={**passage.metadata, **cells, "agent": record.agent}))

    def require_answers(self, answering: set[str]) -> None:
        for agent, row in self._agents.items():
            if agent != SHARED and repeat_of(agent)[0] not in answering:
                advice = similar_name(agent, answering) or "; add its answers, or remove the row"
                raise row.error(f"this agent retrieved documents but answered no query{advice}", agent)

    def share_with_repeats(self, answered: Iterable[tuple[str, str]]) -> None:
        """Give an agent's documents for a query to its repeats, if the tables name none for them."""
        repeats = [key for key in answered if repeat_of(key[1])[1] > 1]
        if not repeats or SHARED in self._agents:
            return
        by_answer: defaultdict[tuple[str, str], list[Retrieved]] = defaultdict(list)
        for entry in self._entries.values():
            by_answer[entry.query_id, entry.agent].append(entry)
        for query_id, agent in repeats:
            if (query_id, agent) not in by_answer:
                for entry in by_answer.get((query_id, repeat_of(agent)[0]), ()):
                    self._entries[query_id, entry.doc_id, agent] = replace(entry, agent=agent)

    def retrieved(self, queries: Iterable[str]) -> dict[str, tuple[Retrieved, ...]]:
        by_query: defaultdict[str, list[Retrieved]] = defaultdict(list)
        for entry in sorted(self._entries.values(), key=lambda entry: (entry.agent, entry.rank)):
            by_query[entry.query_id].append(entry)
        return {query_id: tuple(by_query[query_id]) for query_id in queries if query_id in by_query}

    def _add_document(self, row: Row, doc_id: str) -> None:
        text, metadata = row.text("document"), row.others(DOCUMENTS.columns)
        place = self._places.setdefault(("document", doc_id), row.place)
        known = self.documents.get(doc_id, Document(doc_id, text, metadata))
        if known.text != text and alike(known.text) != alike(text):
            raise row.error(f"document {doc_id!r} has another text in {place}; give one of them another id")
        for name, value in metadata.items():
            if known.metadata.get(name, value) != value:
                raise row.error(f"document {doc_id!r} has another {name!r} in {place} or later; keep one", value)
        self.documents[doc_id] = Document(doc_id, known.text, {**known.metadata, **metadata})

    def _require_first(self, row: Row, key: tuple[str, ...], problem: str) -> None:
        if key in self._places:
            raise row.error(f"{problem} (see {self._places[key]})")
        self._places[key] = row.place


class _Asked:
    """Finds the query to which a row of another table belongs, by the query's id or by its text."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self.queries = queries
        self._by_text: dict[str, list[str]] = {}
        self._floats = are_floats(queries)
        self._forms: dict[tuple[Path, bool], str] = {}
        for query in queries.values():
            self._by_text.setdefault(alike(query.text), []).append(query.query_id)

    def id_of(self, row: Row, query_id: str, text: str) -> str:
        """Find the id of a row's query, by the query id in the row or, if that is empty, by the query's text."""
        if query_id:
            return self._known(row, query_id)
        if not text:
            if "query" in row.values:
                raise row.error(f"'query' {EMPTY}")
            raise DOCUMENTS.missing(row.path, "qid", row.values, row.line)
        matches = self._by_text.get(alike(text), [])
        if len(matches) != 1:
            problem = f"several queries have this text: {', '.join(matches)}; add a column qid" if matches else ""
            raise row.error(problem or f"no query has this text{_ADD_QUERY}", text)
        return matches[0]

    def _known(self, row: Row, query_id: str) -> str:
        """Return the id as the queries spell it: 1.0 matches 1 if a table has only floats as ids, as from pandas."""
        known, is_float = query_id, are_floats([query_id])
        if query_id not in self.queries:
            known = in_form(query_id, floats=self._floats)
        self._forms.setdefault((row.path, is_float), query_id)
        mixed = known != query_id and (row.path, not is_float) in self._forms
        if known not in self.queries or mixed:
            raise row.error(f"no query has this id{similar_name(query_id, self.queries) or _ADD_QUERY}", query_id)
        return known


def _with_one_form(records: Sequence[AnswerRecord]) -> list[AnswerRecord]:
    """Remove ``.0`` from query ids in files where all ids are floats, if another file has ids that are not floats."""
    ids: defaultdict[Path, set[str]] = defaultdict(set)
    for record in records:
        if record.query_id:
            ids[record.row.path].add(record.query_id)
    floats = {path for path, file_ids in ids.items() if are_floats(file_ids)}
    if not floats or len(floats) == len(ids):
        return list(records)
    return [
        replace(record, query_id=in_form(record.query_id, floats=False)) if record.row.path in floats else record
        for record in records
    ]


_Queries: TypeAlias = tuple[dict[str, Query], dict[str, Row]]

_ADD_QUERY: Final = "; add the query, or remove the row"


_ID: Final = 40


def similar_name(name: str, known: Iterable[str]) -> str:
    """``; did you mean '1'?`` with the known name most similar to ``name``; ``""`` if none is similar."""
    names = list(known)
    same = [other for other in names if _value(other) == _value(name)]
    near = same or difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


def _value(name: str) -> float | str:
    try:
        return float(name)
    except ValueError:
        return re.sub(r"(?<!\d)0+(?=\d)", "", alike(name).casefold())


def _require_columns(columns: Columns, sources: Sequence[RowSource]) -> None:
    if unknown := [name for name in columns if name not in OF_DATA]:
        raise InputError(f"columns: unknown name {unknown[0]!r}{nearest(unknown[0], OF_DATA)}")
    if any(not isinstance(source, Rows) and known_format(source) is None for source in sources):
        return  # TREC topics have no header to check
    table_columns = dict.fromkeys(name for source in sources for name in columns_of(source))
    for ours, theirs in ((ours, each) for ours, named in columns.items() for each in names_of(named)):
        if theirs not in table_columns:
            near = difflib.get_close_matches(theirs, table_columns, n=1)
            hint = f"; is it {near[0]!r}?" if near else f"; found {shortened(table_columns)}"
            raise InputError(f"columns: {ours}: no table has a column {theirs!r}{hint}")


def _read_queries(sources: Sequence[RowSource], columns: Columns | None, *, ids: bool) -> _Queries:
    queries: dict[str, Query] = {}
    rows: dict[str, Row] = {}
    for row in (row for source in sources for row in topic_rows(source, columns, ids=ids)):
        text = row.text("query")
        query_id = row.identifier("qid") if "qid" in row.values else query_id_of(row)
        if query_id in queries:
            raise row.error(f"this query id stands in {rows[query_id].place} already; rename or remove one", query_id)
        if not text or text.isspace():
            raise row.error(f"the text of query {query_id!r} {EMPTY}")
        columns_of_query = row.others({"qid", "query", "reference"})
        columns_of_query |= {"reference": gold[0]} if (gold := references_in(row)) else {}
        queries[query_id], rows[query_id] = Query.of(query_id, text, columns_of_query), row
    return queries, rows


def _as_turn(record: AnswerRecord) -> AnswerRecord:
    """Split a record's conversation into query and earlier messages, and set the query's id."""
    row, query = with_messages(record.row), record.query
    if row is not record.row:
        query = row.text("query").strip()
    metadata = {name: text for name, text in record.metadata.items() if name != "messages" or row is record.row}
    query_id = record.query_id or (query and query_id_of(row))
    return replace(record, row=row, query_id=query_id, query=query, metadata=metadata)


_TURN_COLUMNS: Final = ("messages", "conversation", "turn")
"""Columns of a table of answers that describe the query, if there is no table of queries."""


def _queries_of(records: Sequence[AnswerRecord]) -> _Queries:
    """Collect the queries, and a row for each, from the table of answers; used if there is no table of queries."""
    queries: dict[str, Query] = {}
    rows: dict[str, Row] = {}
    for record in records:
        if record.row.form and record.query_id and not record.query:
            how = "data: {queries: FILE, answers: ...}"
            raise record.row.error(f"{record.row.form} has no texts of queries; name a table of them in YAML: {how}")
        if "query" not in record.row.values and not record.query:
            raise ANSWERS.missing(record.row.path, "query", record.row.values, record.row.line, chosen=True)
        if not record.query:
            cell = record.row.values.get("query")
            problem = "is a list; write one text" if isinstance(cell, list | dict) else EMPTY
            raise record.row.error(f"the text of the query {problem}", record.row.text("query") or None)
        columns = {name: text for name in _TURN_COLUMNS if (text := record.row.text(name))}
        query, row = Query.of(record.query_id, record.query, columns), record.row
        known, place = queries.setdefault(query.query_id, query), rows.setdefault(query.query_id, row).place
        if alike(known.text) != alike(query.text):
            raise row.error(
                f"id {clipped(query.query_id, _ID)} has another text in {place}; "
                f"if ids count rows: {how_to_name('qid', 'null')}",
                query.text,
            )
        if known.messages != query.messages:
            raise row.error(
                f"the messages before this query differ from those in {place}; give one of them another id",
                query.query_id,
            )
    return queries, rows


def _require_shared_ids(records: Sequence[AnswerRecord]) -> None:
    """Raise an error if agents answer queries with the same text but never the same id: none could be compared."""
    agents_by_id: dict[str, set[str]] = {}
    texts: dict[str, AnswerRecord] = {}
    for record in records:
        agents_by_id.setdefault(record.query_id, set()).add(record.agent)
    if any(len(agents) > 1 for agents in agents_by_id.values()):
        return
    for record in records:
        other = texts.setdefault(alike(record.query), record)
        if record.query_id and other.query_id != record.query_id and other.agent != record.agent:
            raise record.row.error(
                f"the same query is {clipped(other.query_id, _ID)!r} in {other.row.place}; to go by texts: "
                f"{how_to_name('qid', 'null')}",
                record.query_id,
            )


def _with_repeats(records: Sequence[AnswerRecord]) -> tuple[list[AnswerRecord], dict[str, int], list[str]]:
    """Number the answers of an agent that answers a query several times, see ``repeat_of``.

    The column ``repeat`` numbers them, its values in sorted order; without it, the order of the rows. Also returns the
    number of each value, and a note.
    """
    if len({(record.query_id, record.agent) for record in records}) == len(records):
        return list(records), {}, []
    answers: defaultdict[tuple[str, str], list[AnswerRecord]] = defaultdict(list)
    for record in records:
        answers[record.query_id, record.agent].append(record)
    several = [group for group in answers.values() if len(group) > 1]
    named = all(len({record.repeat for record in group}) == len(group) for group in several)
    if not named:
        _require_repeats(several, records)
    values = sorted({record.repeat for record in records}, key=_in_numbers)
    most = max(map(len, several))
    numbers = {value: number for number, value in enumerate(values, start=1)} if len(values) <= most else {}
    numbered: dict[int, int] = {}
    for group in answers.values():
        ordered = sorted(group, key=lambda record: _in_numbers(record.repeat)) if named else group
        for place, record in enumerate(ordered, start=1):
            numbered[id(record)] = numbers.get(record.repeat, place) if named else place
    agents = sorted({group[0].agent for group in several})
    how = "by column 'repeat'" if named else "in the order of the rows"
    note = f"{listed(agents, _AGENTS)} answered up to {most} times per query: read as repeats 1 to {most}, {how}"
    return [_as_repeat(record, numbered[id(record)]) for record in records], numbers, [note]


def _as_repeat(record: AnswerRecord, number: int) -> AnswerRecord:
    return record if number == 1 else replace(record, agent=repeat_name(record.agent, number))


_AGENTS: Final = 5


def _in_numbers(value: str) -> tuple[float, str]:
    try:
        return float(value or 1), value  # without a value it is the first
    except ValueError:
        return math.inf, value


def _require_repeats(several: Sequence[Sequence[AnswerRecord]], records: Sequence[AnswerRecord]) -> None:
    """Raise an error if several answers of an agent to a query are probably no repeats but a mistake."""
    same_texts = all(len({record.answer for record in group}) == 1 for group in several)
    for first, *others in several:
        for record in others:
            by_passage = not record.named and any(name in record.row.values for name in PASSAGE_NAMES)
            if (
                same_texts
                or by_passage
                or record.repeat
                or record.row.path != first.row.path
                or _misnamed(record, records)
            ):
                raise record.row.error(
                    f"a second answer by {record.agent!r}, see {first.row.place}"
                    f"{_duplicate_advice(record, first.row, records)}",
                    record.query or record.query_id,
                )


def _misnamed(record: AnswerRecord, records: Sequence[AnswerRecord]) -> bool:
    """Whether a column that is not called so probably names the agents."""
    same_file = [one for one in records if one.row.path == record.row.path]
    return not record.named and bool(_likely_agent_column(same_file))


def _answers_of(records: Sequence[AnswerRecord]) -> dict[tuple[str, str], Answer]:
    answers: dict[tuple[str, str], Answer] = {}
    spelt: dict[str, str] = {}
    known: set[str] = set()
    for record in records:
        query_id, agent, row = record.query_id, record.agent, record.row
        if agent not in known and (problem := spelling_problem("agents", agent, spelt)):
            raise row.error(problem)
        known.add(agent)
        if (query_id, agent) in answers:  # named both by the column 'repeat' and like a repeat
            raise row.error(f"a second answer by {agent!r}; remove one", record.query or query_id)
        answers[query_id, agent] = Answer(query_id, agent, record.answer, record.metadata)
    return answers


def _notes_of_failures(failed: Sequence[AnswerRecord], answered: Mapping[tuple[str, str], Answer]) -> Iterator[str]:
    by_key = {(record.query_id, record.agent): record for record in failed}
    missing = {key: record for key, record in by_key.items() if key not in answered}
    if missing:
        first = next(iter(missing.values()))
        yield (
            f"{counted(len(missing), 'row')} with an error and no answer, counted as missing answers: "
            f"{first.row.place} of {first.agent} ({clipped(first.failure, _FAILURE)!r})"
            + ("" if len(missing) == 1 else f" and {len(missing) - 1} more")
        )


_FAILURE: Final = 60


def _duplicate_advice(record: AnswerRecord, first: Row, records: Sequence[AnswerRecord]) -> str:
    """Advice for the error that an agent has two answers to a query; guesses whether a column has the agents' names."""
    if not record.named:
        column = _likely_agent_column([one for one in records if one.row.path == record.row.path])
        return f"; remove one, or name the agents' column: {how_to_name('agent', column or 'NAME')}"
    if first.path != record.row.path:
        return (
            f"; remove one, or if each file is one agent: {how_to_name('agent', 'null')}; or number repeats by a "
            "column 'repeat'"
        )
    return "; remove one, or number repeats by a column 'repeat'"


_REPEATS: Final = re.compile(
    r"run|repeat|trial|epoch|seed|sample|attempt|iteration|turn|rank|time|date|passage|chunk|doc"
)
"""Matches names of columns that are no agent columns, though they distinguish answers to a query, such as ``seed``."""


def _likely_agent_column(records: Sequence[AnswerRecord]) -> str:
    """Guess the agent column: the first with few values, each with at most one answer per query; ``""`` if none."""
    for name in records[0].metadata:
        if _REPEATS.search(name.casefold()):
            continue
        pairs = [(record.query_id or alike(record.query), record.metadata.get(name, "")) for record in records]
        values = {value for _, value in pairs}
        if 1 < len(values) <= len(records) / 2 and "" not in values and len(set(pairs)) == len(pairs):
            return name
    return ""


def _with_references(queries: Mapping[str, Query], records: Sequence[AnswerRecord]) -> dict[str, Query]:
    """Return the queries; those without a gold answer get the one in the table of answers, if any."""
    by_query: dict[str, AnswerRecord] = {}
    for record in records:
        if record.reference.strip():
            first = by_query.setdefault(record.query_id, record)
            if alike(first.reference) != alike(record.reference):
                raise record.row.error(
                    f"the reference of this query is another one in {first.row.place}; keep one", record.reference
                )
    return {
        query_id: replace(query, reference=by_query[query_id].reference)
        if query_id in by_query and query.reference is None
        else query
        for query_id, query in queries.items()
    }


def _with_answerability(queries: Mapping[str, Query], records: Sequence[AnswerRecord]) -> dict[str, Query]:
    """Return the queries; those that do not say whether they can be answered get the columns of the answers' table."""
    cells: dict[tuple[str, str], AnswerRecord] = {}
    for record in records:
        for name in ANSWERABILITY:
            if text := record.row.text(name).strip():
                first = cells.setdefault((record.query_id, name), record)
                if first.row.text(name).strip() != text:
                    problem = f"{name!r} of this query is another one in {first.row.place}; keep one"
                    raise record.row.error(problem, text)
    told = dict(queries)
    for (query_id, name), record in cells.items():
        if not queries[query_id].answerability_cell:
            metadata = {**told[query_id].metadata, name: record.row.text(name).strip()}
            told[query_id] = replace(told[query_id], metadata=metadata)
    return told


def _limited(data: Dataset, limit: int) -> Dataset:
    queries = dict(list(data.queries.items())[:limit])
    retrieved = {query_id: entries for query_id, entries in data.retrieved.items() if query_id in queries}
    wanted = {entry.doc_id for entries in retrieved.values() for entry in entries}
    return replace(
        data,
        queries=queries,
        documents={doc_id: document for doc_id, document in data.documents.items() if doc_id in wanted},
        answers={key: answer for key, answer in data.answers.items() if key[0] in queries},
        retrieved=retrieved,
        left_out=len(data.queries) - len(queries),
    )


def read_answers(source: Path) -> Iterator[tuple[Row, Answer]]:
    """Yield each answer in a table, or in a run of the TREC RAG track, with the row in which it was found."""
    for record in read_records([source]):
        query_id = record.query_id or (record.query and id_of_text("q", record.query))
        if not query_id:
            raise ANSWERS.missing(source, "qid", record.row.values, record.row.line)
        yield record.row, Answer(query_id, record.agent, record.answer, record.metadata)


def _document_row(entry: Retrieved, document: Document, agent: Mapping[str, Cell]) -> dict[str, Cell]:
    row: dict[str, Cell] = {**document.metadata, "qid": entry.query_id, "did": entry.doc_id, "document": document.text}
    return {**row, **agent, "rank": entry.rank, "score": entry.score}
