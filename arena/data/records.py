"""Reads answers from files of many tools: each record is an answer with passages, gold answer and metadata.

Formats that are read without a mapping of columns: ragleague's tables, RAGElo's, ragas (``user_input, response,
retrieved_contexts, reference``), DeepEval (``input, actual_output, retrieval_context, expected_output``), promptfoo's
results, traces of OpenInference and Langfuse, and runs of the TREC RAG track.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from arena.data.traces import trace_rows
from judges.errors import DataError
from judges.types import Document
from retrieval_eval.data.collections import document_of
from retrieval_eval.data.files import file_stem
from retrieval_eval.data.rows import Cell, Row, Rows, cell_text, id_of_text, table_format
from retrieval_eval.data.table_spec import Columns, TableSpec, folded, spellings
from retrieval_eval.data.tables import read_rows

COLUMNS: Final = ("qid", "query", "agent", "answer", "passages", "reference", "repeat")
"""The columns that become fields of an ``AnswerRecord``; all other columns become metadata of the answer."""
ANSWERS: Final = TableSpec((*COLUMNS, "messages", "error"), ("answer",), kept=True, named_by={"answer": "agent"})
_PASSAGE_SPEC: Final = TableSpec(("did", "document"))
_NESTED: Final = 200
_HEADER_ROWS: Final = 100


RowSource: TypeAlias = "Path | str | Rows"
Sources: TypeAlias = "RowSource | Sequence[RowSource]"
"""One table, or several tables that are read as one; a path may be a pattern such as ``answers/*.jsonl``."""


class AnswerRecord(Struct, frozen=True):
    """One answer read from a table.

    Attributes:
        query_id, query: id and text of the query, ``""`` if the table has none.
        agent: the agent's name from its column, else from the file name.
        named: whether a column names the agent.
        answer: the answer's text; may be empty.
        passages: the passages that were retrieved for the answer, best first.
        reference: the gold answer, ``""`` if there is none.
        metadata: the values of all other columns that have a value, as text.
        form: the format of the file, such as ``promptfoo``; ``""`` for a plain table.
        failure: the error in a row without an answer, else ``""``; the answer counts as missing, not as empty.
        repeat: the value of the column ``repeat``, ``""`` without one.
    """

    row: Row
    query_id: str
    query: str
    agent: str
    named: bool
    answer: str
    passages: Sequence[Document]
    reference: str
    metadata: Mapping[str, str]
    form: str = ""
    failure: str = ""
    repeat: str = ""


def sources_of(sources: Sources) -> list[RowSource]:
    """List the tables; each pattern is replaced by the files that match it, sorted by name."""
    several = [sources] if isinstance(sources, str | Path | Rows) else sources
    tables = [table for source in several for table in _matching(source)]
    seen = set()
    for table in tables:
        if not isinstance(table, Rows) and (resolved := os.path.realpath(table)) in seen:
            raise DataError(table, "this file is named twice; name it once")
        if not isinstance(table, Rows):
            seen.add(resolved)
    return tables


def _matching(source: RowSource) -> Iterable[RowSource]:
    if isinstance(source, Rows):
        return [source]
    try:
        exists = bool(os.lstat(source))
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    except (OSError, ValueError) as error:  # too long, or with a character that no file name can have
        raise DataError(str(source)[:40], "is not a valid name of a file; name a file") from error
    if exists or not glob.has_magic(str(source)):
        return [Path(source)]
    if not (names := sorted(glob.glob(str(source), recursive=True))):  # noqa: PTH207 - it may be absolute
        raise DataError(source, "no file matches this pattern; check its folder and name")
    return [Path(name) for name in names]


def read_records(sources: Sequence[RowSource], columns: Columns | None = None) -> Iterator[AnswerRecord]:
    names = _names(sources)
    for source in sources:
        first = {} if isinstance(source, Rows) else _first_record(source)
        if _is_track(first):
            yield from map(_of_trec, _TRACK_ANSWERS.rows(source))
            continue
        name = names[str(_path(source))]
        yield from _by_answer([_record(row, name, form) for row, form in _named(source, first, columns)])


def _first_record(path: Path | str) -> Mapping[str, Cell]:
    """The first record of a file, which shows its format; empty for CSV and TSV files, whose cells hold no objects."""
    return {} if table_format(path) in {"csv", "tsv"} else next(read_rows(path)).values


PASSAGE_NAMES: Final = ("document", *spellings("document"), "context")
"""Names of the column with the passage's text, in tables that have one row for each passage of an answer."""


def _by_answer(records: Sequence[AnswerRecord]) -> Iterable[AnswerRecord]:
    """Merge records of the same answer in tables that have one row for each passage of an answer.

    In such tables, the first row of an answer, or each of its rows, has the answer's text.
    """
    first_records: dict[tuple[str, ...], AnswerRecord] = {}
    for record in records:
        first_records.setdefault(_answer_of(record), record)
    column = next((name for name in PASSAGE_NAMES if all(name in record.row.values for record in records)), None)
    if column is None or len(first_records) == len(records) or any(record.passages for record in records):
        return records
    passages: dict[tuple[str, ...], dict[str, Document]] = {key: {} for key in first_records}
    for record in records:
        key, text = _answer_of(record), record.row.text(column)
        if text in passages[key] or (record.answer.strip() and record.answer != first_records[key].answer):
            return records
        passages[key][text] = Document(id_of_text("d", text), text)
    return [
        replace(
            record,
            row=replace(
                record.row,
                called={name: "passages" if ours == column else ours for name, ours in record.row.called.items()},
            ),
            passages=[each for each in passages[key].values() if each.text.strip()],
            metadata={name: text for name, text in record.metadata.items() if name != column},
        )
        for key, record in first_records.items()
    ]


def _answer_of(record: AnswerRecord) -> tuple[str, ...]:
    return record.query_id or record.query, record.agent, record.repeat


def columns_of(source: RowSource) -> Iterator[str]:
    """Yield the column names in a table's first rows; for promptfoo's results also the names of variables."""
    for row in islice(read_rows(source), _HEADER_ROWS):
        yield from row.values
        yield from variables if isinstance(variables := row.values.get("vars"), dict) else ()


def _named(source: RowSource, first: Mapping[str, Cell], columns: Columns | None) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a table with ragleague's column names, each with the table's format (``""`` if plain)."""
    if (traces := trace_rows(source)) is not None:
        yield from ((row, "traces") for row in ANSWERS.renamed(traces, columns))
    elif not (isinstance(first.get("vars"), dict) and "promptIdx" in first):
        deepeval: bool | None = None
        for row in ANSWERS.rows(source, columns):
            deepeval = _is_deepeval(source, columns) if deepeval is None else deepeval
            yield (_split_passages(row) if deepeval else row), ""
    else:
        results = list(read_rows(source))
        prompts = {cell_text(row.values.get("promptIdx")) for row in results}
        flat = (
            replace(row, values=_flattened(row) | {"agent": _of_promptfoo(row.values, several=len(prompts) > 1)})
            for row in results
        )
        yield from ((row, "promptfoo") for row in ANSWERS.renamed(flat, columns))


def _is_deepeval(source: RowSource, columns: Columns | None) -> bool:
    """Whether DeepEval wrote a table: no other tool writes this combination of columns."""
    if "passages" in (columns or {}):
        return False
    return set(map(folded, columns_of(source))) >= {"input", "actualoutput", "retrievalcontext"}


_TABLE_RULE: Final = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*\|", re.MULTILINE)


def _split_passages(row: Row) -> Row:
    """Split a cell of passages that DeepEval joined as ``one|other``; a Markdown table stays one passage."""
    cell = row.values.get("passages")
    if not isinstance(cell, str) or _TABLE_RULE.search(cell) or row.listed("passages") is not None:
        return row
    return replace(row, values={**row.values, "passages": re.split(r"(?<! )\|(?! )", cell)})


_STATUS: Final = ("status", "status_code", "http_status")
_BAD_STATUS: Final = re.compile(r"(?:HTTP )?[45]\d\d(?:\.0)?|error|failed|failure|time[d_ ]*out", re.IGNORECASE)
_NO_FAILURE: Final = frozenset(("", "none", "null", "nan", "n/a", "false", "0", "no", "ok", "[]", "{}"))


def _failure(row: Row) -> str:
    """The error message or error status in a row that has no answer; ``""`` if it has an answer or no error."""
    error = row.text("error").strip()
    if error.casefold() in _NO_FAILURE:
        states = (row.text(name).strip() for name in _STATUS)
        error = next((f"status {state}" for state in states if _BAD_STATUS.fullmatch(state)), "")
    answer = row.text("answer").strip()
    no_answer = answer.casefold() in {"", "nan", "none", "null"} or answer == error
    return error if no_answer and error.casefold() not in _NO_FAILURE else ""


def _record(row: Row, name: str, form: str) -> AnswerRecord:
    failure = _failure(row)
    if not failure and "answer" not in row.values:
        raise ANSWERS.missing(row.path, "answer", row.values, row.line, chosen=True)
    if isinstance(nested := row.values.get("answer"), list | dict):
        kind = "a list" if isinstance(nested, list) else "an object"
        raise row.error(f"the answer is {kind}; a judge reads one text: join it", cell_text(nested)[:_NESTED])
    if row.values.get("citations") and (cited := row.listed("citations")) is not None:
        row = replace(row, values={**row.values, "citations": cited})
    query = "" if isinstance(row.values.get("query"), list | dict) else row.text("query").strip()
    named = "agent" in row.values
    return AnswerRecord(
        row,
        row.identifier("qid") if "qid" in row.values else "",
        query,
        row.identifier("agent") if named else name,
        named,
        row.text("answer"),
        list(_passages(row)),
        next(iter(references_in(row)), ""),
        row.others(COLUMNS),
        form,
        failure,
        row.text("repeat").strip(),
    )


def _names(sources: Sequence[RowSource]) -> dict[str, str]:
    """Agent's name for tables without an agent column, by path: the file's name or, if names recur, the folder's."""
    paths = [_path(source) for source in sources]
    stems = Counter(map(file_stem, paths))
    stems_in_folders = Counter((file_stem(path), path.parent) for path in paths)

    def name(path: Path) -> str:
        if stems[file_stem(path)] == 1:
            return file_stem(path)
        return path.resolve().parent.name if stems_in_folders[file_stem(path), path.parent] == 1 else path.name

    return {str(path): name(path) for path in paths}


def _path(source: RowSource) -> Path:
    return Path(source.name if isinstance(source, Rows) else source)


def _passages(row: Row) -> Iterator[Document]:
    cell, listed = row.values.get("passages"), row.listed("passages")
    entries = listed if listed is not None else [cell] if row.text("passages").strip() else []
    seen = set()
    for number, entry in enumerate(entries, start=1):
        document = _document(row, entry)
        if document is None:
            raise row.error(
                f'passage {number} is neither a text nor an object with one, such as {{"text": ...}}',
                cell_text(entry)[:_NESTED],
            )
        if document.text.strip() and document.doc_id not in seen:
            seen.add(document.doc_id)
            yield document


def _document(row: Row, entry: Cell) -> Document | None:
    if not isinstance(entry, str | dict | list):  # a LangChain document or LlamaIndex node
        node = getattr(entry, "node", entry)
        text = getattr(node, "page_content", None) or getattr(node, "text", None)
        entry = {"text": text, "metadata": getattr(node, "metadata", None)}
    if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], int | float):  # a pair with the score
        entry = entry[0]
    if isinstance(entry, str):
        return Document(id_of_text("d", entry), entry)
    if isinstance(entry, dict) and isinstance(entry.get("node"), dict):  # LlamaIndex
        entry = entry["node"]
    if not isinstance(entry, dict):
        return None
    cells = {**entry, **(entry["metadata"] if isinstance(entry.get("metadata"), dict) else {})}  # LangChain
    cells.pop("metadata", None)
    called = _PASSAGE_SPEC.named(cells)
    values = {called[name]: cell for name, cell in cells.items() if called[name]}
    if not isinstance(text := values.get("document"), str):
        return None
    return document_of(Row(row.path, row.line, {"did": id_of_text("d", text), **values}))


def references_in(row: Row) -> list[str]:
    """The gold answers in a row's cell ``reference``, which holds one text or a list of texts."""
    several = row.listed("reference")
    if several is not None:
        return [entry for entry in several if isinstance(entry, str) and entry.strip()]
    return [text] if (text := row.text("reference")).strip() else []


_ASSERTED: Final = 1
"""Value of promptfoo's ``failureReason`` for an answer that failed an assertion."""


def _flattened(row: Row) -> dict[str, Cell]:
    """Convert a promptfoo result to the cells of one row: its variables, output, error, latency and cost."""
    values, variables = row.values, row.values.get("vars")
    if not isinstance(variables, dict):
        raise row.error("promptfoo's 'vars' must be an object", row.text("vars")[:_NESTED])
    response = values.get("response")
    response = response if isinstance(response, dict) else {"output": response}
    output, inner = response.get("output"), response.get("metadata")
    flat: dict[str, Cell] = {name: cell for name, cell in variables.items() if name not in {"output", "response"}}
    flat |= inner if isinstance(inner, dict) else {}
    flat |= output if isinstance(output, dict) else {"answer": output}
    if values.get("failureReason") != _ASSERTED:
        flat["error"] = values.get("error") or response.get("error")
    flat |= {name: values[name] for name in ("score", "namedScores") if values.get(name) not in (None, {})}
    latency = values.get("latencyMs")
    flat |= {"latency_s": latency / 1000} if isinstance(latency, int | float) else {}
    flat |= {"cost_usd": values["cost"]} if isinstance(values.get("cost"), int | float) else {}
    if "query" not in TableSpec(("query",)).named(flat).values():
        texts = [cell for cell in variables.values() if isinstance(cell, str)]
        if len(texts) == 1:
            flat["query"] = texts[0]
    return flat


def _of_promptfoo(values: Mapping[str, Cell], *, several: bool) -> str:
    """Agent's name for a promptfoo result: the provider, followed by the prompt if there are ``several`` prompts."""
    provider, prompt = values.get("provider"), values.get("prompt")
    provider = provider if isinstance(provider, dict) else {"id": provider}
    name = cell_text(provider.get("label")) or cell_text(provider.get("id"))
    if not several:
        return name
    label = cell_text(prompt.get("label")) if isinstance(prompt, dict) else ""
    raw = cell_text(prompt.get("raw")) if isinstance(prompt, dict) else ""
    short = label and label != raw and "\n" not in label and len(label) <= 40 and "{{" not in label
    return f"{name} {label if short else 'prompt ' + cell_text(values.get('promptIdx'))}"


_SENTENCES: Final = ("answer", "responses")
_TOPIC: Final = ("topic_id", "narrative_id", "request_id")
_TRACK_FIELDS: Final = frozenset({"run_id", "topic", "narrative", "references", "metadata", *_SENTENCES, *_TOPIC})
_TRACK_ANSWERS: Final = TableSpec()
_TRACK_FORM: Final = "answers of a TREC track"


def _is_track(record: Mapping[str, Cell]) -> bool:
    """Whether a record is an answer as the tracks RAG, RAGTIME and DRAGUN have it: a list of sentences."""
    sentences = next((record[name] for name in _SENTENCES if isinstance(record.get(name), list)), None)
    if not isinstance(sentences, list) or "references" in record:
        return isinstance(sentences, list)
    named = {*record, *(nested if isinstance(nested := record.get("metadata"), dict) else ())}
    return not named.isdisjoint(_TOPIC) and all(isinstance(each, dict) and "text" in each for each in sentences)


def _of_trec(row: Row) -> AnswerRecord:
    """Convert an answer in a submission to TREC RAG (2024 to 2026), RAGTIME or DRAGUN to a record.

    A record has ``answer`` or ``responses``, a list of sentences ``{text, citations}``, and ``references``, document
    ids, by default those that it cites. Its other fields may be those of ``metadata``. The run becomes the agent; the
    sentences, joined by spaces, become the answer's text. The record's ``metadata`` contains ``query``, ``references``
    and ``sentences`` (both as JSON), and every other field as text. Citations ``{document: confidence}`` become a list,
    the surest first.
    """
    nested = row.values.get("metadata", {})
    if not isinstance(nested, dict):
        raise row.error("'metadata' must be an object", row.text("metadata"))
    fields = {**row.values, **nested}
    sentences = _sentences(row, next((fields[name] for name in _SENTENCES if fields.get(name) is not None), None))
    if fields.get("references") is None:
        cited = [citation for sentence in sentences for citation in sentence.get("citations", [])]
        if any(isinstance(citation, int) for citation in cited):
            raise row.error("sentences cite by number, so 'references' must list the document ids")
        fields["references"] = list(dict.fromkeys(map(str, cited)))
    if not isinstance(fields["references"], list):
        raise row.error("'references' must be a list of document ids", row.text("references"))
    metadata = {
        name: text for name, value in fields.items() if name not in _TRACK_FIELDS and (text := cell_text(value))
    }
    query = _first_of(fields, "topic", "narrative")
    metadata |= {"query": query, "references": json.dumps(fields["references"], ensure_ascii=False)}
    metadata["sentences"] = json.dumps(sentences, ensure_ascii=False)
    names = {}
    for keys in (_TOPIC, ("run_id",)):
        if not (name := _first_of(fields, *keys).strip()):
            raise row.error(f"{' or '.join(map(repr, keys))} is missing or empty")
        names[keys[0]] = name
    text = " ".join(sentence["text"] for sentence in sentences)
    row = replace(row, called={})  # the track fixes the columns, so that none need be reported
    return AnswerRecord(row, names["topic_id"], query, names["run_id"], True, text, [], "", metadata, _TRACK_FORM)


def _sentences(row: Row, answer: Any) -> list[dict[str, Any]]:
    if not isinstance(answer, list):
        raise row.error("'answer' must be a list of sentences", cell_text(answer))
    sentences = []
    for number, cell in enumerate(answer, start=1):
        if not isinstance(cell, dict) or not isinstance(cell.get("text"), str):
            raise row.error(f"sentence {number} has no text", cell_text(cell))
        # Parquet adds null fields, since all objects of a column have the same fields.
        sentence = {name: value for name, value in cell.items() if value is not None}
        if isinstance(confidences := sentence.get("citations"), dict):
            known = {doc_id: value for doc_id, value in confidences.items() if value is not None}
            for doc_id, value in known.items():
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise row.error(
                        f"sentence {number}: the confidence of {doc_id!r} is not a number", cell_text(value)
                    )
            sentence |= {"citations": sorted(known, key=lambda doc_id: -known[doc_id]), "confidences": known}
        if not isinstance(sentence.get("citations", []), list):
            raise row.error(f"sentence {number}: 'citations' must be a list", cell_text(sentence["citations"]))
        sentences.append(sentence)
    return sentences


def _first_of(fields: Mapping[str, Any], *names: str) -> str:
    return next((cell_text(fields[name]) for name in names if fields.get(name) is not None), "")
