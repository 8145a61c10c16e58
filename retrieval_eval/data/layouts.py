"""Formats of other tools: ``LAYOUTS`` says how each becomes rows of a table, for every reader of tables.

A record (an object of JSON, or a row whose cells hold JSON) of a known format is recognized by its keys. Its columns
are then JMESPath expressions. Where a tool uses names as keys, such as those of questions, a function makes the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

Cells: TypeAlias = Mapping[str, Any]


class Layout(Struct, frozen=True):
    """A format of another tool.

    Attributes:
        name: its name in messages.
        keys: the keys by which a record is recognized.
        where: JMESPath expression that must hold as well; empty if the keys suffice.
        columns: for each column of ragleague the JMESPath expression of its cell.
        spread: expressions of objects whose entries become columns.
        rows: function from a record to the columns that differ between its rows; by default one row.
        kept: whether the record's other keys stay columns.
        objects: keys whose cells may be JSON as text, as in CSV.
    """

    name: str
    keys: Collection[str]
    where: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    spread: tuple[str, ...] = ()
    rows: Callable[[Cells], Iterable[Cells]] | None = None
    kept: bool = False
    objects: tuple[str, ...] = ()


def _label_studio(record: Cells) -> Iterator[Cells]:
    """A row for each annotation: a column for each control, by its name; a pair's choice is the verdict too."""
    for annotation in objects_in(record.get("annotations")):
        if annotation.get("was_cancelled"):
            continue
        by, row = annotation.get("completed_by"), dict[str, Any]()
        for result in objects_in(annotation.get("result")):
            value = result.get("value")
            cell = next(iter(value.values()), None) if isinstance(value, Mapping) else None
            for name in ("selected", "choices", "rating", "number", "text"):
                cell = value[name] if isinstance(value, Mapping) and name in value else cell
            cell = cell[0] if isinstance(cell, list) and len(cell) == 1 else cell
            row |= {str(result.get("from_name")): cell} | (
                {"verdict": cell} if result.get("type") == "pairwise" else {}
            )
        yield row | {"annotator": by.get("email") or by.get("id") if isinstance(by, Mapping) else by}


def _argilla(record: Cells) -> Iterator[Cells]:
    """A row for each person: a column for each question, by its name."""
    by_person: dict[str, dict[str, Any]] = {}
    responses = record["responses"]
    if isinstance(responses, Mapping):  # version 2: by question, then by person
        for question, answers in responses.items():
            for answer in objects_in(answers):
                by_person.setdefault(str(answer.get("user_id", "")), {})[question] = answer.get("value")
    for response in objects_in(responses):  # version 1: by person, then by question
        values = response.get("values")
        if response.get("status") == "discarded" or not isinstance(values, Mapping):
            continue
        cells = {name: each.get("value") if isinstance(each, Mapping) else each for name, each in values.items()}
        by_person.setdefault(str(response.get("user_id", "")), {}).update(cells)
    for person, cells in by_person.items():
        yield {**cells, "annotator": person}


_OUTPUT: Final = re.compile(r"\[([^\]]+)\] (.+)", re.DOTALL)
_VERDICT: Final = re.compile(r"\[(PASS|FAIL|ERROR)\]\s?")


def _promptfoo_csv(record: Cells) -> Iterator[Cells]:
    """A row for each output: the columns before the first one are variables, those after an output tell about it."""
    names = list(record)
    outputs = [place for place, name in enumerate(names) if _OUTPUT.fullmatch(name)]
    variables = {name: record[name] for name in names[: outputs[0]]}
    if len(variables) == 1:
        variables = {"query": next(iter(variables.values()))}
    for start, end in zip(outputs, [*outputs[1:], len(names)], strict=True):
        about = {name.partition("\0")[0].casefold(): record[name] for name in names[start + 1 : end]}
        text = str(record[names[start]] or "")
        mark = _VERDICT.match(text)
        text = text[mark.end() :] if mark else text
        failed = (about.get("status") or (mark and mark[1])) == "ERROR"
        provider, prompt = _OUTPUT.fullmatch(names[start]).groups()  # type: ignore[union-attr]
        yield {
            **variables,
            "agent": f"{provider} {prompt}",
            **({"error": text, "answer": ""} if failed else {"answer": text}),
            **{name: about[name] for name in ("score", "named scores") if about.get(name)},
        }


def _bank_of_nuggets(record: Cells) -> Iterator[Cells]:
    """A row with questions and claims as items of an exam and as nuggets; nuggets within one follow it."""
    items: list[Cells] = []
    nuggets: list[Cells] = []
    pending = [entry for bank in ("nugget_bank", "claim_bank") for entry in _entries(record.get(bank))]
    while pending:
        entry = pending.pop(0)
        pending[:0] = _entries(entry.get("sub_nuggets"))
        question, claim = (str(entry.get(name) or "") for name in ("question", "claim"))
        answers = [str(each.get("answer", "")) for each in _entries(entry.get("answers"))]
        joined = (" and " if entry.get("aggregator_type") == "AND" else " or ").join(answers)
        if entry.get("aggregator_type") == "AND":
            answers = [joined] if joined else []
        items.append({"question": question, "answers": answers} if question else {"nugget": claim})
        importance = entry.get("importance") if entry.get("importance") in ("vital", "okay") else None
        nuggets.append({"text": f"{question or claim} {joined}".strip(), "importance": importance})
    yield {"items": items, "nuggets": nuggets}


_IN: Final = ("inputs", "input", "request")
_OUT: Final = ("outputs", "output", "response", "answer", "prediction", "completion", "generation", "result")
_GOLD: Final = ("reference_outputs", "reference", "expected", "expectations")
_QUERIES: Final = ("question", "query", "input", "user_input", "prompt", "text", "messages[-1].content", "args[0]")
_ANSWERS: Final = (
    *("answer", "response", "output", "prediction", "completion", "generation", "result", "output_text", "text"),
    *("content", "value", "message.content", "choices[0].message.content", "body.choices[0].message.content"),
    *("output[0].content[0].text", "body.output[0].content[0].text", "generations[0].text", "messages[-1].content"),
)
_GOLDS: Final = ("expected_response", "expected_answer", "expected_output", "reference", "ground_truth", *_ANSWERS)
_TEXTS: Final = {"query": (_IN, _QUERIES), "answer": (_OUT, _ANSWERS), "reference": (_GOLD, _GOLDS)}
_ABOUT: Final = ("id", "model", "type", "object", "created", "args", "kwargs")
"""Entries of calls and responses that do not describe the answer; ``model`` would name the agent."""
_CONTEXT: Final = ("contexts", "context", "documents", "retrieved_contexts", "passages", "source_documents", "sources")


def _objects_in_cells(record: Cells) -> Iterator[Cells]:
    """Texts in place of the objects that hold inputs, outputs and expected outputs; other entries become columns."""
    row: dict[str, Any] = dict(record)
    for column, (names, paths) in _TEXTS.items():
        for name in names:
            if not isinstance(whole := record.get(name), Mapping):
                continue
            del row[name]
            texts = [text for path in paths if isinstance(text := _searched(path, whole), str)]
            rivals = {whole[path] for path in paths[:4] if isinstance(whole.get(path), str)}
            entries = {key: cell for key, cell in whole.items() if key not in {*paths, *_ABOUT} or len(rivals) > 1}
            if column == "answer" and (key := next((key for key in _CONTEXT if isinstance(whole.get(key), list)), "")):
                row["passages"] = entries.pop(key)
            row |= {key: cell for key, cell in entries.items() if column != "reference" and row.get(key) is None}
            if texts and len(rivals) <= 1:
                row[column] = texts[0]
    yield row


LAYOUTS: Final = (
    Layout(
        "judgments of Arena-Hard",
        ("model", "games"),
        "type(games) == 'array' && games[?contains(keys(@), 'score')]",
        {
            "qid": "uid || question_id",
            "agent_a": "baseline || 'baseline'",
            "agent_b": "model",
            "judge": "judge",
            "winner_ab": "games[0].score",
            "winner_ba": "games[1].score",
        },
    ),
    Layout("judgments of MT-bench", ("model_1", "model_2", "g1_winner"), "", {"judge": "judge[0] || judge"}, kept=True),
    Layout("Label Studio's JSON", ("data", "annotations"), "", {"id": "id"}, ("data",), _label_studio),
    Layout("Argilla's JSON", ("fields", "responses"), "", {"id": "id"}, ("fields", "metadata"), _argilla),
    *(
        Layout(
            name, (bank,), "", {"qid": "query_id || metadata.topic_id", "query": "title_query"}, (), _bank_of_nuggets
        )
        for bank, name in {"nugget_bank": "a bank of nuggets", "claim_bank": "a bank of claims"}.items()
    ),
    Layout(
        "a log of Inspect",
        ("epoch", "input", "output"),
        "",
        {
            "qid": "id",
            "query": "input[-1].content[0].text || input[-1].content || input",
            "reference": "target[0] || target",
            "answer": "output.completion || output.choices[0].message.content",
            "error": "error.message || output.error",
            "repeat": "epoch",
            "scores": "scores",
        },
    ),
    Layout(
        "output of OpenAI's batches",
        ("custom_id", "response"),
        "",
        {
            "qid": "custom_id",
            "answer": "response.body.choices[0].message.content || "
            "(response.body.output[?type=='message'].content[] | [?type=='output_text'].text | [0])",
            "error": "error.message || response.body.error.message",
        },
    ),
    Layout(
        "input of OpenAI's batches",
        ("custom_id", "body"),
        "",
        {"qid": "custom_id", "query": "body.messages[-1].content || body.input"},
    ),
    Layout(
        "results of Anthropic's batches",
        ("custom_id", "result"),
        "",
        {
            "qid": "custom_id",
            "answer": "result.message.content[?type=='text'].text | [0]",
            "error": "result.error.error.message || result.error.message",
        },
    ),
    Layout(
        "Phoenix's frame of questions and answers",
        ("input", "output", "reference", "context.span_id"),
        "",
        {"query": "input", "answer": "output", "passages": "[reference]"},
    ),
    Layout("promptfoo's CSV", (), "", rows=_promptfoo_csv),
    Layout("inputs and outputs as objects", (), "", rows=_objects_in_cells, objects=(*_IN, *_OUT, *_GOLD)),
)
"""The formats, tried in this order."""
_CSV, _NESTED = LAYOUTS[-2:]


@lru_cache(maxsize=256)
def layout_of(keys: tuple[str, ...]) -> Layout | None:
    """The format that a record with these keys may have; ``None`` if it is an ordinary row."""
    for layout in LAYOUTS:
        if layout.keys and set(layout.keys) <= set(keys):
            return layout
    if any(_OUTPUT.fullmatch(name) for name in keys) and any(name.startswith("Status") for name in keys):
        return _CSV
    nested = not {name.partition(".")[0] for name in keys}.isdisjoint((*_IN, *_OUT))
    return _NESTED if nested and not set(keys) >= _PROMPTFOO else None


_PROMPTFOO: Final = frozenset({"vars", "promptIdx"})


_NAMING: Final = frozenset({"qid", "agent_a", "agent_b"})


def laid_out(record: Cells) -> tuple[str, list[Cells]] | None:
    """The name of a record's format, and its rows; ``None`` if it is an ordinary row."""
    layout = layout_of(tuple(record))
    if layout is None:
        return None
    if layout is _NESTED:
        record = _unfolded(record)
        if not any(isinstance(record.get(name), Mapping) for name in (*_IN, *_OUT)):
            return None
    elif layout.where and not _searched(layout.where, record):
        return None
    shared: dict[str, Any] = {**record} if layout.kept else {}
    for part in layout.spread:
        found = _searched(part, record)
        shared |= found if isinstance(found, Mapping) else {}
    for column, expression in layout.columns.items():
        if column in _NAMING:  # stay under their names too, so that the user may choose otherwise
            shared |= {key: record[key] for key in expression.split(" || ") if isinstance(record.get(key), str | int)}
        if (cell := _searched(expression, record)) is not None or column in {"winner_ab", "winner_ba", "answer"}:
            shared[column] = cell
    if shared.get("error") is not None and shared.get("answer") is None:
        shared["answer"] = ""
    return layout.name, [{**shared, **row} for row in (layout.rows(record) if layout.rows is not None else ({},))]


def _unfolded(record: Cells) -> dict[str, Any]:
    """The record with objects in place of JSON as text, and of columns such as ``inputs.question``."""
    nested: dict[str, Any] = {}
    texts = any(isinstance(record.get(name), str) and str(record[name]).lstrip()[:1] == "{" for name in _IN)
    for name, cell in record.items():
        outer, dot, inner = name.partition(".")
        if dot and outer in _NESTED.objects:
            held = nested.setdefault(outer, {})
            if isinstance(held, dict):
                held[inner] = cell
        elif texts and name in _NESTED.objects and isinstance(cell, str) and cell.lstrip()[:1] == "{":
            try:
                nested[name] = json.loads(cell)
            except (ValueError, RecursionError):
                nested[name] = cell
        else:
            nested[name] = cell
    return nested


@lru_cache(maxsize=64)
def _compiled(expression: str) -> Any:
    import jmespath

    return jmespath.compile(expression)


def _searched(expression: str, record: Cells) -> Any:
    """What an expression gives; ``None`` if the record has other types than the format."""
    from jmespath.exceptions import JMESPathError

    try:
        return _compiled(expression).search(record)
    except JMESPathError:
        return None


def _entries(value: Any) -> list[Cells]:
    return objects_in([*value.values()] if isinstance(value, Mapping) else value)


def objects_in(value: Any) -> list[Cells]:
    """The JSON objects in a list; empty for any other value."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
