"""Traces in the forms that OpenInference, Phoenix and Langfuse document are read as answers, without a mapping."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from judges.errors import DataError

BEGUN = 1_760_000_000_000_000_000
SECOND = 1_000_000_000


def write(path: Path, content: Any, *, lines: bool = False) -> Path:
    text = "".join(json.dumps(each) + "\n" for each in content) if lines else json.dumps(content, indent=2)
    path.write_text(text, encoding="utf-8")
    return path


def otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # as protobuf's JSON writes 64 bits
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(each) for each in value]}}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def otlp_span(span: str, parent: str, begun: int, ended: int, attributes: Mapping[str, Any], trace: str = "t1") -> Any:
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": span,
        "startTimeUnixNano": str(BEGUN + begun * SECOND),
        "endTimeUnixNano": str(BEGUN + ended * SECOND),
        "attributes": [{"key": key, "value": otlp_value(value)} for key, value in attributes.items()],
        "status": {},
    }


def otlp(*spans: Any, project: str = "mine") -> dict[str, Any]:
    resource = {"attributes": [{"key": "openinference.project.name", "value": {"stringValue": project}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def retriever(*texts: str, parent: str = "root", trace: str = "t1") -> Any:
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": "Who runs it?"}
    for number, text in enumerate(texts):
        attributes |= {
            f"retrieval.documents.{number}.document.content": text,
            f"retrieval.documents.{number}.document.id": f"n{number}",
            f"retrieval.documents.{number}.document.score": 0.9 - number / 10,
            f"retrieval.documents.{number}.document.metadata": json.dumps({"title": f"Title {number}", "page": 3}),
        }
    return otlp_span("ret", parent, 0, 1, attributes, trace)


QUERY_ENGINE = otlp(
    otlp_span(
        "root",
        "",
        0,
        3,
        {"openinference.span.kind": "CHAIN", "input.value": "Who runs it?", "output.value": "The town runs it."},
    ),
    retriever("The town runs the library.", "It opened in 1912."),
    otlp_span(
        "llm",
        "root",
        1,
        3,
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Context: ... Query: Who runs it?",
            "llm.output_messages.0.message.content": "The town runs it.",
            "llm.token_count.prompt": 120,
            "llm.token_count.completion": 6,
            "output.value": "The town runs it.",
        },
    ),
)


def only(data: Dataset) -> tuple[str, str, str]:
    """Query, agent and answer of the one answer."""
    ((key, answer),) = data.answers.items()
    return data.queries[key[0]].text, answer.agent, answer.text


def test_spans_of_otlp_become_a_query_an_answer_and_its_documents(tmp_path: Path) -> None:
    data = load_dataset(answers=write(tmp_path / "engine.json", QUERY_ENGINE))
    assert only(data) == ("Who runs it?", "engine", "The town runs it.")
    (answer,) = data.answers.values()
    assert answer.metadata == {"trace_id": "t1", "latency_s": "3.0", "input_tokens": "120", "output_tokens": "6"}
    (ranked,) = data.retrieved.values()
    assert [(entry.doc_id, entry.agent, entry.rank) for entry in ranked] == [("n0", "engine", 1), ("n1", "engine", 2)]
    assert data.documents["n0"].text == "The town runs the library."
    assert data.documents["n0"].metadata == {"title": "Title 0"}


def test_a_collectors_lines_may_hold_parts_of_one_trace(tmp_path: Path) -> None:
    spans = QUERY_ENGINE["resourceSpans"][0]["scopeSpans"][0]["spans"]
    data = load_dataset(answers=write(tmp_path / "engine.jsonl", [otlp(span) for span in reversed(spans)], lines=True))
    assert only(data) == ("Who runs it?", "engine", "The town runs it.")
    assert len(data.documents) == 2


def test_spans_as_the_sdk_prints_them_and_objects_as_chains_pass_them(tmp_path: Path) -> None:
    """``ReadableSpan.to_json`` of a LangChain chain: its input and output are JSON in a text."""
    root = {
        "name": "RunnableSequence",
        "context": {"trace_id": "0xa1", "span_id": "0x01", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": None,
        "start_time": "2026-03-01T10:00:00.000000Z",
        "end_time": "2026-03-01T10:00:01.500000Z",
        "status": {"status_code": "OK"},
        "attributes": {
            "openinference.span.kind": "CHAIN",
            "input.value": json.dumps({"question": "Who runs it?", "language": "en"}),
            "input.mime_type": "application/json",
            "output.value": json.dumps({"context": ["c"], "answer": "The town."}),
            "output.mime_type": "application/json",
            "metadata": json.dumps({"qid": "q7", "reference": "The town.", "model": "gpt"}),
        },
        "resource": {"attributes": {"service.name": "unknown_service"}},
    }
    data = load_dataset(answers=write(tmp_path / "chain.jsonl", [root], lines=True))
    assert only(data) == ("Who runs it?", "chain", "The town.")
    assert data.queries["q7"].reference == "The town."
    assert data.answers["q7", "chain"].metadata["latency_s"] == "1.5"


def test_spans_as_phoenix_exports_them(tmp_path: Path) -> None:
    common = {"context.trace_id": "a", "name": "query", "start_time": "2026-03-01T10:00:00+00:00"}
    documents = [{"document.content": "The town runs it.", "document.id": "d1", "document.score": 0.5}]
    rows = [
        {
            **common,
            "context.span_id": "1",
            "parent_id": None,
            "span_kind": "CHAIN",
            "attributes.input.value": "Who runs it?",
            "attributes.output.value": "The town.",
        },
        {
            **common,
            "context.span_id": "2",
            "parent_id": "1",
            "span_kind": "RETRIEVER",
            "attributes.retrieval.documents": documents,
        },
    ]
    data = load_dataset(answers=write(tmp_path / "phoenix.json", rows))
    assert only(data) == ("Who runs it?", "phoenix", "The town.")
    assert [document.text for document in data.documents.values()] == ["The town runs it."]


def test_what_a_reranker_left_over_is_what_the_answer_had(tmp_path: Path) -> None:
    reranked = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents.0.document.content": "It opened in 1912.",
        "reranker.input_documents.0.document.content": "The town runs the library.",
    }
    trace = otlp(*QUERY_ENGINE["resourceSpans"][0]["scopeSpans"][0]["spans"], otlp_span("r", "root", 1, 2, reranked))
    data = load_dataset(answers=write(tmp_path / "engine.json", trace))
    assert [document.text for document in data.documents.values()] == ["It opened in 1912."]


def test_under_a_span_of_the_server_alone_the_query_is_the_retrievers_and_the_answer_the_models(tmp_path: Path) -> None:
    spans = QUERY_ENGINE["resourceSpans"][0]["scopeSpans"][0]["spans"]
    trace = otlp(otlp_span("root", "", 0, 3, {"http.route": "/ask"}), *spans[1:])
    assert only(load_dataset(answers=write(tmp_path / "ask.json", trace)))[::2] == ("Who runs it?", "The town runs it.")


def test_several_projects_in_a_file_are_agents(tmp_path: Path) -> None:
    told = {"openinference.span.kind": "CHAIN", "input.value": "Who runs it?", "output.value": "The town."}
    lines = [otlp(otlp_span("s", "", 0, 1, told, trace), project=trace) for trace in ("new", "old")]
    assert load_dataset(answers=write(tmp_path / "all.jsonl", lines, lines=True)).agents == ("new", "old")


def test_a_trace_that_failed_is_no_answer(tmp_path: Path) -> None:
    failed = otlp_span("s", "", 0, 1, {"openinference.span.kind": "CHAIN", "input.value": "Why?"}, "t2")
    trace = otlp(*QUERY_ENGINE["resourceSpans"][0]["scopeSpans"][0]["spans"], failed)
    assert len(load_dataset(answers=write(tmp_path / "engine.json", trace)).answers) == 1


LANGFUSE = {
    "id": "trace-1",
    "timestamp": "2026-03-01T10:00:00.000Z",
    "name": "rag",
    "input": {"question": "Who runs it?"},
    "output": {"answer": "The town."},
    "metadata": {"query_id": "q7", "expected_output": "The town."},
    "sessionId": None,
    "release": None,
    "version": None,
    "tags": [],
    "public": False,
    "latency": 2.25,
    "totalCost": 0.0012,
    "scores": [],
    "observations": [
        {
            "id": "o1",
            "type": "RETRIEVER",
            "name": "vector store",
            "output": [{"pageContent": "The town runs it.", "metadata": {"title": "Town"}, "id": "c1"}, "In 1912."],
        },
        {"id": "o2", "type": "GENERATION", "name": "model", "usage": {"input": 100, "output": 5, "unit": "TOKENS"}},
    ],
}


@pytest.mark.parametrize("form", ["one", "list", "api", "lines"])
def test_traces_of_langfuse_in_each_form_that_it_gives_them(tmp_path: Path, form: str) -> None:
    content = {
        "one": LANGFUSE,
        "list": [LANGFUSE],
        "api": {"data": [LANGFUSE], "meta": {"page": 1}},
        "lines": [LANGFUSE],
    }
    suffix = "jsonl" if form == "lines" else "json"
    data = load_dataset(answers=write(tmp_path / f"lf.{suffix}", content[form], lines=form == "lines"))
    assert only(data) == ("Who runs it?", "lf", "The town.")
    assert data.queries["q7"].reference == "The town."
    assert data.answers["q7", "lf"].metadata == {
        "trace_id": "trace-1",
        "latency_s": "2.25",
        "cost_usd": "0.0012",
        "input_tokens": "100",
        "output_tokens": "5",
    }
    assert [document.text for document in data.documents.values()] == ["The town runs it.", "In 1912."]
    assert data.documents["c1"].metadata == {"title": "Town"}


def steps(form: str) -> list[dict[str, Any]]:
    """A trace as Langfuse exports observations: each beside the others, in its columns' spelling or its API's."""
    own: dict[str, Any] = {
        "trace_id": "t9",
        "start_time": "2026-05-29 13:46:19.000000",
        "end_time": "2026-05-29 13:46:21.500000",
    }
    listed = [
        {
            "id": "o2",
            "type": "RETRIEVER",
            "parent_observation_id": "o1",
            "input": "Who runs it?",
            "output": [{"page_content": "The town runs it.", "metadata": {"title": "Town"}}],
        },
        {"id": "o1", "type": "SPAN", "parent_observation_id": "", "input": {"query": "Who runs it?"}, "output": "It."},
        {
            "id": "o3",
            "type": "GENERATION",
            "parent_observation_id": "o1",
            "input": "Documents: ...",
            "output": "It.",
            "usage_details": {"input": 90, "output": 4},
            "total_cost": 0.25,
        },
    ]
    rows = [{"usage_details": {}, "total_cost": None, **own, **each} for each in listed]
    if form == "api":
        camel = {"trace_id": "traceId", "parent_observation_id": "parentObservationId", "usage_details": "usageDetails"}
        camel |= {"start_time": "startTime", "end_time": "endTime", "total_cost": "totalCost"}
        return [{camel.get(name, name): value for name, value in row.items()} for row in rows]
    return rows


@pytest.mark.parametrize("form", ["csv", "lines", "api"])
def test_observations_of_langfuse_beside_each_other_become_traces(tmp_path: Path, form: str) -> None:
    path = tmp_path / {"csv": "lf.csv", "lines": "lf.jsonl", "api": "lf.json"}[form]
    rows = steps(form)
    if form == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            for row in rows:  # objects are JSON within a cell
                table.writerow(
                    {name: json.dumps(own) if own and not isinstance(own, str) else own for name, own in row.items()}
                )
    else:
        write(path, {"data": rows} if form == "api" else rows, lines=form == "lines")
    data = load_dataset(answers=path)
    ((query_id, query),) = data.queries.items()
    assert (query.text, data.answers[query_id, "lf"].text) == ("Who runs it?", "It.")
    took = {"trace_id": "t9", "latency_s": "2.5", "cost_usd": "0.25", "input_tokens": "90", "output_tokens": "4"}
    assert data.answers[query_id, "lf"].metadata == took
    assert [(each.text, each.metadata) for each in data.documents.values()] == [
        ("The town runs it.", {"title": "Town"})
    ]


@pytest.mark.parametrize("structured", [True, False])
def test_opentelemetrys_own_conventions_of_generative_ai(tmp_path: Path, structured: bool) -> None:
    """Messages and documents stand on spans as JSON, or as structured values (semantic conventions 1.37 and later)."""

    def listed(value: Any) -> Any:
        return value if structured else json.dumps(value)

    def said(role: str, text: str) -> Any:
        return {"role": role, "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}

    def attributes(operation: str, **named: Any) -> dict[str, Any]:
        return {"gen_ai.operation.name": operation, **{name.replace("__", "."): own for name, own in named.items()}}

    documents = [{"id": "d1", "score": 0.9, "content": "The town runs it."}, {"id": "d2", "score": 0.1}]
    asked = [said("system", "Be short."), said("user", "Who runs it?")]
    spans = [
        attributes(
            "retrieval", gen_ai__retrieval__query__text="Who runs it?", gen_ai__retrieval__documents=listed(documents)
        ),
        attributes(
            "chat",
            gen_ai__input__messages=listed([said("user", "Documents: ... Who runs it?")]),
            gen_ai__output__messages=listed([said("assistant", "The town.")]),
            gen_ai__usage__input_tokens=50,
            gen_ai__usage__output_tokens=3,
        ),
        attributes(
            "invoke_agent",
            gen_ai__input__messages=listed(asked),
            gen_ai__output__messages=listed([said("assistant", "The town.")]),
        ),
    ]
    for name, chosen in (("whole", spans), ("model", spans[:2])):
        printed = [
            {
                "name": own["gen_ai.operation.name"],
                "context": {"trace_id": "0x1", "span_id": str(number)},
                "parent_id": "2" if number < 2 else None,
                "attributes": own,
            }
            for number, own in enumerate(chosen)
        ]
        data = load_dataset(answers=write(tmp_path / f"{name}.json", printed))
        assert only(data) == ("Who runs it?", name, "The town.")
        (answer,) = data.answers.values()
        assert (answer.metadata["input_tokens"], answer.metadata["output_tokens"]) == ("50", "3")
        assert {each.doc_id: each.text for each in data.documents.values()} == {"d1": "The town runs it."}


def test_a_conversation_is_asked_by_its_last_user_and_answered_by_its_last_message(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Who runs it?"}]
    trace = {
        **LANGFUSE,
        "input": json.dumps({"messages": said}),
        "output": {"role": "assistant", "content": "The town."},
    }
    assert only(load_dataset(answers=write(tmp_path / "lf.json", [trace]))) == ("Who runs it?", "lf", "The town.")


def test_the_output_of_a_pipeline_of_haystack(tmp_path: Path) -> None:
    given = {"data": {"retriever": {"query": "Who runs it?"}, "prompt": {"question": "Who runs it?"}}}
    trace = {**LANGFUSE, "input": given, "output": {"llm": {"replies": ["The town."], "meta": [{"model": "m"}]}}}
    assert only(load_dataset(answers=write(tmp_path / "lf.json", [trace]))) == ("Who runs it?", "lf", "The town.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (otlp(otlp_span("s", "", 0, 1, {"http.route": "/"})), "no trace has a query and an answer"),
        (
            otlp(otlp_span("s", "", 0, 1, {"openinference.span.kind": "CHAIN", "output.value": "Yes."})),
            r"the trace has an answer and no query: no step has a text in 'input.value' \('t1'\)",
        ),
        ([{**LANGFUSE, "input": {"a": 1, "b": 2}}], "the trace has an answer and no text of a query in 'input'"),
        ([LANGFUSE, LANGFUSE], "a second answer by"),
        ([LANGFUSE, 3], "this entry is not a JSON object, but each trace must be one"),
        ([{**LANGFUSE, "output": None}], "no trace has a query and an answer in 'input' and 'output'"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path, content: Any, said: str) -> None:
    path = write(tmp_path / "traces.json", content)
    with pytest.raises(DataError, match=said) as error:
        load_dataset(answers=path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def sdk_spans(steps: Sequence[tuple[str, Mapping[str, Any]]]) -> Any:
    """Spans that OpenTelemetry's SDK made: the first step around the others."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    (outer, attributes), *inner = steps
    with tracer.start_as_current_span(outer, attributes=attributes):
        for name, own in inner:
            tracer.start_span(name, attributes=own).end()
    return exporter.get_finished_spans()


def by_openinference() -> list[tuple[str, Mapping[str, Any]]]:
    trace = pytest.importorskip("openinference.semconv.trace", reason="not installed: 'make frameworks'")
    of, kinds, document = trace.SpanAttributes, trace.OpenInferenceSpanKindValues, trace.DocumentAttributes
    kind = of.OPENINFERENCE_SPAN_KIND
    first = f"{of.RETRIEVAL_DOCUMENTS}.0"
    found = {f"{first}.{document.DOCUMENT_ID}": "d1", f"{first}.{document.DOCUMENT_CONTENT}": "The town runs it."}
    return [
        ("ask", {kind: kinds.CHAIN.value, of.INPUT_VALUE: "Who runs it?", of.OUTPUT_VALUE: "The town."}),
        ("find", {kind: kinds.RETRIEVER.value, of.INPUT_VALUE: "Who runs it?", **found}),
    ]


def by_opentelemetry() -> list[tuple[str, Mapping[str, Any]]]:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as of

    operations = of.GenAiOperationNameValues

    def said(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    asked = {of.GEN_AI_INPUT_MESSAGES: said("user", "Who runs it?")}
    answered = {of.GEN_AI_OUTPUT_MESSAGES: said("assistant", "The town.")}
    found = json.dumps([{"id": "d1", "score": 0.9, "content": "The town runs it."}])
    searched = {of.GEN_AI_RETRIEVAL_QUERY_TEXT: "Who runs it?", of.GEN_AI_RETRIEVAL_DOCUMENTS: found}
    return [
        ("ask", {of.GEN_AI_OPERATION_NAME: operations.INVOKE_AGENT.value, **asked, **answered}),
        ("find", {of.GEN_AI_OPERATION_NAME: operations.RETRIEVAL.value, **searched}),
    ]


@pytest.mark.filterwarnings("ignore")  # of the packages' own imports
@pytest.mark.parametrize("form", ["sdk", "otlp"])
@pytest.mark.parametrize(
    ("package", "made"),
    [
        ("openinference-semantic-conventions", by_openinference),
        ("opentelemetry-semantic-conventions", by_opentelemetry),
    ],
)
def test_spans_that_the_real_packages_write(
    package: str, made: Callable[[], list[tuple[str, Mapping[str, Any]]]], form: str, tmp_path: Path
) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    spans = sdk_spans(made())
    print(package, version(package), "opentelemetry-sdk", version("opentelemetry-sdk"))  # noqa: T201 - which these were
    if form == "sdk":
        text = "".join(span.to_json(indent=None) + "\n" for span in spans)
    else:
        encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
        from google.protobuf.json_format import MessageToJson

        text = MessageToJson(encoder.encode_spans(spans), indent=None) + "\n"  # a line, as the collector's file has
    (tmp_path / "mine.jsonl").write_text(text)
    data = load_dataset(answers=tmp_path / "mine.jsonl")
    assert only(data) == ("Who runs it?", "mine", "The town.")
    assert {each.doc_id: each.text for each in data.documents.values()} == {"d1": "The town runs it."}


@pytest.mark.filterwarnings("ignore")  # of the packages' own imports
def test_observations_as_the_client_of_langfuse_has_them(tmp_path: Path) -> None:
    api = pytest.importorskip("langfuse.api", reason="langfuse is not installed: 'make frameworks'")
    print("langfuse", version("langfuse"))  # noqa: T201 - which one this was
    rows = [
        {"project_id": "p", **row, "parent_observation_id": row["parent_observation_id"] or None} for row in steps("")
    ]
    whole = api.ObservationsV2Response(data=[api.ObservationV2(**row) for row in rows], meta=api.ObservationsV2Meta())
    (tmp_path / "lf.json").write_text(whole.json())
    assert only(load_dataset(answers=tmp_path / "lf.json")) == ("Who runs it?", "lf", "It.")
