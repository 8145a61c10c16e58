"""Reads answers from traces of running systems: OpenTelemetry spans, and exports of Langfuse.

Each trace becomes one row of a table of answers: ``query``, ``answer``, ``passages``, latency, tokens and cost. Spans
may have the attributes of OpenInference or of OpenTelemetry's conventions for generative AI, in OTLP JSON
(``resourceSpans``), as printed by the SDK, or as exported by Phoenix. Langfuse traces may come from its pages, its API,
or its exports of observations. Traces without an output are skipped.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from judges.errors import DataError
from retrieval_eval.data.files import read_json, read_lines
from retrieval_eval.data.layouts import objects_in
from retrieval_eval.data.rows import Cell, Row, Rows, known_format, list_in
from retrieval_eval.data.table_spec import spellings
from retrieval_eval.data.tables import read_rows

_Object: TypeAlias = Mapping[str, Any]

_QUERY: Final = (
    *("query", "question", "user_input", "user_query", "input", "inputs", "query_str", "prompt", "messages", "message"),
    *("content", "text", "args", "kwargs", "data"),
)
_ANSWER: Final = (
    *("answer", "output", "outputs", "response", "result", "output_text", "completion", "generation", "replies"),
    "reply",
    *("choices", "generations", "messages", "message", "content", "text", "kwargs", "data"),
)
"""Keys under which an output object may have its text, the likeliest first; ``_QUERY`` has those for inputs."""
_PASSAGES: Final = ("passages", *spellings("passages"), "context", "documents", "sources")
_TEXTS: Final = ("page_content", "pageContent", "content", "text", "document", "passage")
_METADATA_COLUMNS: Final = (
    *("agent", "agent_name", "system_name", "qid", "reference", *spellings("reference")),
    *(name for name in spellings("qid") if "_" in name[1:]),
)
"""Keys that are read from a trace's ``metadata``; not ``model`` and ``run_id``, which do not name the agent there."""
_NOT_ANSWERING: Final = frozenset({"RETRIEVER", "RERANKER", "EMBEDDING", "TOOL", "GUARDRAIL", "EVALUATOR"})
_LANGFUSE: Final = frozenset(
    {"observations", "bookmarked", "projectId", "project_id", "htmlPath", "externalId", "sessionId", "session_id"}
)
_USER_ROLES: Final = frozenset({"user", "human"})
_OPERATIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "LLM"),
    "retrieval": "RETRIEVER",
    "embeddings": "EMBEDDING",
    "execute_tool": "TOOL",
}
"""OpenInference's kind of span for each operation name of OpenTelemetry; other operations are of kind ``CHAIN``."""
_UNFLATTENED: Final = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.retrieval.documents")
_LIST_SUFFIXES: Final = (".documents", "_documents", "_messages", ".messages", ".metadata")
_NUMBERED: Final = re.compile(r"(.+?)\.(\d+)\.(?:document|message)\.(.+)")


class _Span(Struct, frozen=True):
    """One span (step) of a trace; times are in seconds since 1970, and nested attributes have dotted names."""

    line: int
    trace: str
    span: str
    parent: str
    begun: float | None
    ended: float | None
    attributes: Mapping[str, Any]
    service: str

    @property
    def kind(self) -> str:
        return str(self.attributes.get("openinference.span.kind", "")).upper()

    def documents(self, prefix: str) -> list[Cell]:
        documents: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        for name, value in self.attributes.items():
            if (match := _NUMBERED.fullmatch(name)) is not None and match[1] == prefix:
                documents[int(match[2])][match[3]] = value
        return [_passage(documents[number]) for number in sorted(documents) if documents[number].get("content")]

    def message(self, prefix: str, role: str = "") -> str:
        """Text of the last message under the attribute ``prefix``, or of the last one with this role."""
        by_number: defaultdict[int, dict[str, str]] = defaultdict(dict)
        for name, value in self.attributes.items():
            if (match := _NUMBERED.match(name)) is not None and match[1] == prefix:
                by_number[int(match[2])][match[3]] = str(value)
        messages = [message for _, message in sorted(by_number.items()) if not role or message.get("role") == role]
        last = messages[-1] if messages else {}
        return last.get("content") or last.get("contents.0.message_content.text", "")


def trace_rows(source: Path | str | Rows) -> list[Row] | None:
    """Read the answers from a table or file of traces, one row for each trace; ``None`` if it holds no traces.

    A row has the line, or the number, of its trace. Columns: ``query, answer, passages, trace_id``; if known,
    ``latency_s, input_tokens, output_tokens, cost_usd``; and ``agent``, the query's id and the reference from the
    trace's metadata. The passages are those of the last reranker, or of all retrievers if there is none. If a file has
    several projects or services, they are the agents.
    """
    path = Path(str(source))
    try:
        objects = _objects(path) if not isinstance(source, Rows) else map(_numbered, read_rows(source, raw=True))
        first = next(objects, None)
    except DataError:  # reading it as a table reports the error
        return None
    if first is None or not (_is_spans(first[1]) or _is_langfuse(first[1])):
        return None
    langfuse, objects = _is_langfuse(first[1]), itertools.chain([first], objects)
    if rows := list(_of_langfuse(path, objects) if langfuse else _of_spans(path, objects)):
        return rows
    fields = (
        "'input' and 'output'"
        if langfuse
        else "the attributes 'input.value' and 'output.value' (OpenInference), or 'gen_ai.input.messages' and "
        "'gen_ai.output.messages' (OpenTelemetry)"
    )
    raise DataError(path, f"no trace has a query and an answer in {fields}; export the inputs and outputs too")


def _numbered(row: Row) -> tuple[int, _Object]:
    return row.line, row.values


def _objects(path: Path) -> Iterator[tuple[int, _Object]]:
    """Yield the JSON objects in a file, each with its line, or its position from 1 if the file is one JSON list."""
    kind = known_format(path)
    if kind not in {"json", "jsonl"}:
        yield from map(_numbered, read_rows(path, raw=True))
        return
    if kind == "json":
        whole = read_json(path)
        if isinstance(whole, Mapping) and isinstance(whole.get("data"), list):  # a response of Langfuse's API
            whole = whole["data"]
        entries: Iterable[tuple[int, Any]] = enumerate(whole if isinstance(whole, list) else [whole], start=1)
    else:
        entries = ((number, _decoded(path, number, line)) for number, line in read_lines(path) if line.strip())
    for number, entry in entries:
        if not isinstance(entry, Mapping):
            raise DataError(
                path, "this entry is not a JSON object, but each trace must be one", line=number, value=str(entry)
            )
        yield number, entry


def _decoded(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"not JSON: {error}", line=number) from error


def _is_spans(first: _Object) -> bool:
    if "resourceSpans" in first or "resource_spans" in first or "context.trace_id" in first:
        return True
    return "attributes" in first and bool(_named(first, "trace_id", "traceId") or _of(first, "context").get("trace_id"))


def _is_langfuse(first: _Object) -> bool:
    if _is_observation(first):
        return True
    return "input" in first and "output" in first and "timestamp" in first and not _LANGFUSE.isdisjoint(first)


def _is_observation(each: _Object) -> bool:
    """Whether an object is an observation (one step of a trace) from Langfuse's export of observations."""
    return bool(_named(each, "trace_id", "traceId") and _named(each, "type")) and "input" in each and "output" in each


def _whole_traces(objects: Iterable[tuple[int, _Object]]) -> Iterator[tuple[int, _Object]]:
    """Yield Langfuse traces, with single observations grouped by trace.

    Such a group is yielded as its root observation, with all observations under the key ``observations``.
    """
    by_trace: dict[str, list[tuple[int, _Object]]] = {}
    for line, each in objects:
        if _is_observation(each):
            by_trace.setdefault(str(_named(each, "trace_id", "traceId")), []).append((line, each))
        else:
            yield line, each
    for trace, observations in by_trace.items():
        line, root = next(
            (entry for entry in observations if not _named(entry[1], "parent_observation_id", "parentObservationId")),
            observations[0],
        )
        begun, ended = (_seconds(_named(root, f"{end}_time", f"{end}Time")) for end in ("start", "end"))
        latency = {"latency": round(ended - begun, 6)} if begun and ended else {}
        costs = [float(cost) for _, each in observations if _is_number(cost := _named(each, "total_cost", "totalCost"))]
        totals = {"id": trace, "total_cost": sum(costs) if costs else None, "totalCost": None}
        yield line, {**root, **latency, **totals, "observations": [each for _, each in observations]}


def _of_spans(path: Path, objects: Iterable[tuple[int, _Object]]) -> Iterator[Row]:
    traces: dict[str, list[_Span]] = {}
    for line, each in objects:
        for span in _spans(line, each):
            traces.setdefault(span.trace, []).append(span)
    services = {span.service for spans in traces.values() for span in spans if span.service}
    for spans in traces.values():
        row = _row_of_spans(path, sorted(spans, key=lambda span: span.begun or 0.0))
        if row is not None:
            service = next((span.service for span in spans if span.service), "")
            yield Row(path, row.line, {"agent": service, **row.values}) if service and len(services) > 1 else row


def _spans(line: int, each: _Object) -> Iterator[_Span]:
    groups = _named(each, "resourceSpans", "resource_spans")
    if groups is None:
        yield _span(line, each, _flat(_of(_of(each, "resource"), "attributes")))
        return
    for group in objects_in(groups):
        resource = _otlp(_of(group, "resource").get("attributes"))
        for scope in objects_in(_named(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")):
            for span in objects_in(scope.get("spans")):
                yield _span(line, {**span, "attributes": _otlp(span.get("attributes"))}, resource)


def _span(line: int, each: _Object, resource: _Object) -> _Span:
    context = _of(each, "context")
    attributes = _flat(_of(each, "attributes"))
    # A data frame has one column per attribute.
    columns = {name[11:]: value for name, value in each.items() if name.startswith("attributes.")}
    attributes |= _flat(
        {name: _listed(value) if name.endswith(_LIST_SUFFIXES) else value for name, value in columns.items()}
    )
    attributes = {name: value for name, value in attributes.items() if not _is_missing(value)}
    attributes = _of_gen_ai(attributes) | attributes
    if kind := _named(each, "span_kind"):
        attributes.setdefault("openinference.span.kind", kind)

    def ident(*names: str) -> str:
        return str(_named(each, *names) or next((context[name] for name in names if context.get(name)), ""))

    service = str(resource.get("openinference.project.name") or resource.get("service.name") or "")
    return _Span(
        line,
        ident("traceId", "trace_id", "context.trace_id"),
        ident("spanId", "span_id", "context.span_id"),
        str(_named(each, "parentSpanId", "parent_span_id", "parent_id") or ""),
        _seconds(_named(each, "startTimeUnixNano", "start_time_unix_nano", "start_time")),
        _seconds(_named(each, "endTimeUnixNano", "end_time_unix_nano", "end_time")),
        attributes,
        "" if service.startswith("unknown_service") else service,
    )


def _of_gen_ai(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a span's attributes from OpenTelemetry's names for generative AI to OpenInference's names."""
    if "gen_ai.operation.name" not in attributes:
        return {}
    query = attributes.get("gen_ai.retrieval.query.text")
    converted = {
        "openinference.span.kind": _OPERATIONS.get(str(attributes["gen_ai.operation.name"]), "CHAIN"),
        "input.value": query or _last_message(attributes.get("gen_ai.input.messages"), "user"),
        "output.value": _last_message(attributes.get("gen_ai.output.messages"), "assistant"),
        "llm.token_count.prompt": attributes.get("gen_ai.usage.input_tokens"),
        "llm.token_count.completion": attributes.get("gen_ai.usage.output_tokens"),
    }
    for number, each in enumerate(objects_in(_read(attributes.get("gen_ai.retrieval.documents")))):
        document = {"content": _named(each, *_TEXTS), "id": each.get("id")}
        prefix = f"retrieval.documents.{number}.document"
        converted |= {f"{prefix}.{name}": value for name, value in document.items() if value}
    return converted


def _last_message(messages: Any, role: str) -> str:
    of_role = [each for each in objects_in(_read(messages)) if each.get("role") == role]
    parts = objects_in(of_role[-1].get("parts")) if of_role else []
    return "\n".join(str(part["content"]) for part in parts if part.get("type") == "text" and part.get("content"))


def _row_of_spans(path: Path, spans: Sequence[_Span]) -> Row | None:
    """Convert a trace to a row: query = input of its first outermost span, answer = output of its last outermost span.

    ``None`` if no span has an answer.
    """
    depth = _depths(spans)
    answering = [span for span in spans if span.kind not in _NOT_ANSWERING and _output(span)]
    if not answering:
        return None
    outermost = min(depth[span.span] for span in answering)
    top = [span for span in answering if depth[span.span] == outermost]
    chains = [span for span in top if span.kind != "LLM"] or top
    asked = [span for span in chains if _input(span)]
    retrievers = [span for span in spans if span.kind == "RETRIEVER"]
    if chains[0].kind == "LLM" and retrievers:  # an LLM's input is the whole prompt, a retriever's the query
        asked = [span for span in retrievers if _input(span)] or asked
    row = Row(path, chains[-1].line, {})
    if not asked:
        raise row.error("the trace has an answer and no query: no step has a text in 'input.value'", chains[-1].trace)
    first = asked[0]
    query = _input(first) if first.kind != "LLM" else first.message("llm.input_messages", "user") or _input(first)
    reranked = [documents for span in spans if (documents := span.documents("reranker.output_documents"))]
    passages = (
        reranked[-1] if reranked else [each for span in retrievers for each in span.documents("retrieval.documents")]
    )
    metadata = _metadata_cells(top[0].attributes.get("metadata") or _metadata(top[0].attributes))
    return Row(
        path,
        row.line,
        {**metadata, "query": query, "answer": _output(chains[-1]), "passages": passages, **_usage(spans, top)},
    )


def _usage(spans: Sequence[_Span], top: Sequence[_Span]) -> dict[str, Cell]:
    """Cells with a trace's id, latency, tokens and cost; unknown figures have no cell."""
    usage: dict[str, Cell] = {"trace_id": top[0].trace}
    begun, ended = [span.begun for span in top if span.begun], [span.ended for span in top if span.ended]
    if begun and ended:
        usage["latency_s"] = round(max(ended) - min(begun), 6)
    parents = {span.parent for span in spans if span.kind == "LLM"}
    models = [span for span in spans if span.kind == "LLM" and span.span not in parents]
    for column, name in (
        ("input_tokens", "llm.token_count.prompt"),
        ("output_tokens", "llm.token_count.completion"),
        ("cost_usd", "llm.cost.total"),
    ):
        if counts := [float(span.attributes[name]) for span in models if _is_number(span.attributes.get(name))]:
            usage[column] = sum(counts) if column == "cost_usd" else int(sum(counts))
    return usage


def _depths(spans: Sequence[_Span]) -> dict[str, int]:
    """Number of ancestors of each span of a trace, by the span's id; ancestors missing from the file do not count."""
    parents = {span.span: span.parent for span in spans}
    depths = {}
    for span, parent in parents.items():
        seen, at = {span}, parent
        while at in parents and at not in seen:
            seen.add(at)
            at = parents[at]
        depths[span] = len(seen) - 1
    return depths


def _input(span: _Span) -> str:
    return _text(span.attributes.get("input.value"), _QUERY) or span.message("llm.input_messages", "user")


def _output(span: _Span) -> str:
    return span.message("llm.output_messages") or _text(span.attributes.get("output.value"), _ANSWER)


def _of_langfuse(path: Path, objects: Iterable[tuple[int, _Object]]) -> Iterator[Row]:
    for line, trace in _whole_traces(objects):
        trace_input, output = _read(trace.get("input")), _read(trace.get("output"))
        answer, query = _text(output, _ANSWER), _text(trace_input, _QUERY)
        if not answer:
            continue
        if not query:
            raise Row(path, line, {}).error(
                "the trace has an answer and no text of a query in 'input'", str(trace["input"])
            )
        observations = objects_in(_read(trace.get("observations")))
        passages = [each for observation in observations for each in _retrieved(observation)]
        for value in (output, trace_input) if not passages else ():
            if isinstance(value, Mapping) and isinstance(listed := _named(value, *_PASSAGES), list):
                passages = [passage for each in listed if (passage := _as_passage(each))]
                break
        values: dict[str, Cell] = {
            **_metadata_cells(trace.get("metadata")),
            "query": query,
            "answer": answer,
            "passages": passages,
        }
        values["trace_id"] = str(trace.get("id", ""))
        for column, names in (("latency_s", ("latency",)), ("cost_usd", ("totalCost", "total_cost"))):
            if _is_number(amount := _named(trace, *names)):
                values[column] = float(str(amount))
        yield Row(path, line, values | _tokens(observations))


def _retrieved(observation: _Object) -> list[Cell]:
    kind, name = str(observation.get("type", "")).upper(), str(observation.get("name", "")).lower()
    if kind != "RETRIEVER" and not (kind == "SPAN" and "retriev" in name):
        return []
    output = _read(observation.get("output"))
    if isinstance(output, Mapping):
        output = _named(output, *_PASSAGES)
    return [passage for each in output if (passage := _as_passage(each))] if isinstance(output, list) else []


def _tokens(observations: Iterable[_Object]) -> dict[str, Cell]:
    tokens: defaultdict[str, int] = defaultdict(int)
    for observation in observations:
        usage = _read(_named(observation, "usageDetails", "usage_details", "usage"))
        usage = usage if isinstance(usage, Mapping) else {}
        for column, name in (("input_tokens", "input"), ("output_tokens", "output")):
            if observation.get("type") == "GENERATION" and _is_number(usage.get(name)):
                tokens[column] += int(float(usage[name]))
    return dict(tokens)


def _as_passage(each: Any) -> Cell:
    if isinstance(each, str):
        return {"document": each}
    if not isinstance(each, Mapping):
        return None
    inner = each.get("document")
    each = inner if isinstance(inner, Mapping) else each
    text = _named(each, *_TEXTS)
    return _passage({**each, "content": text}) if isinstance(text, str) and text else None


def _passage(document: _Object) -> dict[str, Any]:
    """Cells of a retrieved passage: its text, its id, and the texts in its metadata."""
    metadata = _read(document.get("metadata")) or _metadata(document)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    extra = {name: value for name, value in metadata.items() if isinstance(value, str) and name not in {"id", *_TEXTS}}
    ident = document.get("id")
    return {**extra, **({"did": str(ident)} if ident else {}), "document": str(document["content"])}


def _metadata_cells(metadata: Any) -> dict[str, Cell]:
    cells = _read(metadata)
    cells = cells if isinstance(cells, Mapping) else {}
    return {
        name: cells[name]
        for name in _METADATA_COLUMNS
        if isinstance(cells.get(name), str | int) and str(cells[name]).strip()
    }


def _text(value: Any, names: Sequence[str]) -> str:
    """Text of a span's input or output: the value or, if it is an object, the text under the first of these keys."""
    value = _read(value)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        roles = [_role(each) for each in value]
        if any(roles):  # a conversation
            messages = [
                each for each, role in zip(value, roles, strict=True) if names is _ANSWER or role in _USER_ROLES
            ]
            return _text(messages[-1], names) if messages else ""
        return next(filter(None, (_text(each, names) for each in value)), "")
    if not isinstance(value, Mapping):
        return ""
    named = (_text(value[name], names) for name in names if value.get(name))
    inner = (_text(each, names) for each in value.values() if len(value) == 1 or isinstance(each, Mapping))
    return next(filter(None, named), "") or next(filter(None, inner), "")


def _role(message: Any) -> str:
    """Role of a chat message in OpenAI's or LangChain's format; ``""`` if the value is no such message."""
    inner = _of(message, "kwargs") or message
    return str(_named(inner, "role", "type") or "") if isinstance(inner, Mapping) and "content" in inner else ""


def _read(value: Any) -> Any:
    """Parse a text that contains JSON; return any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "[", '"'}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _listed(value: Any) -> Any:
    """Parse a text that contains a list or object as JSON or as a Python literal; return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return (list_in(f"[{value}]") or [value])[0]
    except ValueError:
        return value


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty; in a table of spans, the cells of attributes that a span does not have are empty."""
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN alone differs from itself


def _flat(nested: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(nested, Mapping | list) or prefix[:-1] in _UNFLATTENED:
        return {prefix[:-1]: nested}
    entries = nested.items() if isinstance(nested, Mapping) else enumerate(nested)
    return {name: cell for key, each in entries for name, cell in _flat(each, f"{prefix}{key}.").items()}


def _otlp(attributes: Any) -> dict[str, Any]:
    """Convert OTLP attributes, a list of keys with typed values, to a flat map with dotted names."""
    if isinstance(attributes, Mapping):
        return _flat(attributes)
    return _flat({str(each["key"]): _otlp_value(each.get("value")) for each in objects_in(attributes) if "key" in each})


def _otlp_value(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        return None
    ((kind, content),) = list(value.items())[:1]
    if kind in {"arrayValue", "array_value"}:
        return [_otlp_value(each) for each in objects_in(_of(value, kind).get("values"))]
    if kind in {"kvlistValue", "kvlist_value"}:
        return {
            str(each.get("key")): _otlp_value(each.get("value")) for each in objects_in(_of(value, kind).get("values"))
        }
    return content


def _metadata(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes whose names begin with ``metadata.``, by the rest of the name."""
    prefix = "metadata."
    return {key.removeprefix(prefix): value for key, value in attributes.items() if key.startswith(prefix)}


def _of(value: Any, name: str) -> Mapping[str, Any]:
    """The JSON object under the key ``name`` of a value; an empty object if there is none."""
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _named(value: Mapping[str, Any], *names: str) -> Any:
    """The value of the first of the keys ``names`` that has a value; ``None`` if none of them has one."""
    return next((value[name] for name in names if value.get(name) not in (None, "")), None)


def _is_number(value: Any) -> bool:
    try:
        return isfinite(float(value)) and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        return False


def _seconds(value: Any) -> float | None:
    """Convert a time in nanoseconds or in ISO 8601 to seconds since 1970; ``None`` if it is neither."""
    if _is_number(value):
        return float(value) / 1e9
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return None
