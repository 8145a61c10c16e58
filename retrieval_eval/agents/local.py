"""Agents that are no server: a Python function of one's own, or answers that stand in files."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from judges.errors import DataError, InputError, ProviderError
from judges.masking import one_line
from judges.types import Document, Query
from retrieval_eval.agents.reading import read_reply, read_usage
from retrieval_eval.agents.spec import AgentSpec, MappingSpec
from retrieval_eval.agents.types import AgentFailure, AgentReply, Meter, Reply, Retrieved
from retrieval_eval.data.collections import DOCUMENT_ALIASES, document_of
from retrieval_eval.data.rows import Row
from retrieval_eval.data.tables import read_rows

_MAPPING = MappingSpec(
    answer="answer",
    documents="documents",
    citations="citations",
    input_tokens="input_tokens",
    output_tokens="output_tokens",
    cost_usd="cost_usd",
)

Function = Callable[[Query], Any]


class CallableAgent:
    """Calls ``function(query)``; an exception is a failure.

    The function gives a text, or a mapping with ``answer`` and whatever it has of ``documents`` (``id``, ``text``,
    ``score``), ``citations``, ``input_tokens``, ``output_tokens`` and ``cost_usd``. One that is no coroutine is called
    in a thread; when its time is up it is left alone there, since Python cannot end it.
    """

    notes: tuple[str, ...] = ()

    def __init__(
        self, name: str, spec: AgentSpec, function: Function, corpus: Mapping[str, Document], identity: str
    ) -> None:
        self.name, self.identity = name, identity
        self._function, self._corpus, self._timeout_s = function, corpus, spec.timeout_s
        self._free = asyncio.Semaphore(spec.concurrency)

    async def reply(self, query: Query) -> Reply:
        """Call the function."""
        meter = Meter()
        async with self._free:
            try:
                with meter.timed():
                    given, seconds = await self._called(query)
                if seconds is not None:
                    meter.latency_s = meter.tried_s = seconds
                return self._read(given, meter)
            except ProviderError as error:
                return meter.failure(error)

    async def _called(self, query: Query) -> tuple[Any, float | None]:
        """What the function returned, and its seconds where it ran beside this program's other work."""
        waiting = asyncio.timeout(self._timeout_s)
        try:
            async with waiting:
                if inspect.iscoroutinefunction(self._function):
                    return await self._function(query), None
                given, seconds = await _in_thread(self._function, query)
                return (await given, None) if inspect.isawaitable(given) else (given, seconds)
        except Exception as error:
            if waiting.expired():
                raise ProviderError("timeout", f"no reply within {self._timeout_s:g} s") from None
            raise ProviderError("exception", one_line(f"{type(error).__name__}: {error}")) from error

    def _read(self, given: Any, meter: Meter) -> Reply:
        if isinstance(given, str):
            given = {"answer": given}
        if given is None:
            raise ProviderError("empty", "the function returned None")
        if not isinstance(given, Mapping):
            message = f"the function returned a {type(given).__name__}, not a text or a mapping"
            raise ProviderError("contract", message)
        body = dict(given)
        meter.usage, meter.cost_usd = read_usage(body, _MAPPING)
        found = read_reply(body, _MAPPING, self._corpus)
        return meter.reply(found.answer, found.documents, found.citations)

    async def close(self) -> None:
        """Nothing is held."""


async def _in_thread(function: Function, query: Query) -> tuple[Any, float]:
    """What it returned and its seconds.

    In a daemon thread: one that hangs must not keep the program from ending, as a pool's would.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)

    def work() -> None:
        result, error = None, None
        started = time.perf_counter()
        try:
            result = function(query), time.perf_counter() - started
        except Exception as raised:
            error = raised
        except BaseException as raised:  # SystemExit, of code that was written as a script
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits

    threading.Thread(target=work, daemon=True).start()
    returned: tuple[Any, float] = await future
    return returned


def load_function(named: str) -> tuple[Function, str]:
    """The function that ``module:function`` or ``file.py:function`` names, and a hash of the file that holds it.

    Raises:
        InputError: there is no such module or function, or it cannot be imported.
    """
    where, _, name = named.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file") from None
    except Exception as error:
        raise InputError(f"{where} cannot be imported: {one_line(f'{type(error).__name__}: {error}')}") from error
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"{where} has no function {name!r}")
    source = getattr(module, "__file__", None)
    return found, _digest(Path(source).read_bytes()) if source else ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _from_file(path: Path) -> ModuleType:
    """The module of a file as Python would run it: known by its name, with the files beside it within reach."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    found = importlib.util.spec_from_file_location(f"agent_{_digest(str(path).encode())}", path)
    assert found is not None  # of a name that ends in .py
    assert found.loader is not None
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


_QUERY_ID = {"qid": ("query_id", "question_id")}


@dataclass(frozen=True)
class RecordedAgent:
    """Gives what was read; latency and cost are not known."""

    name: str
    identity: str
    answers: Mapping[str, str]
    documents: Mapping[str, tuple[Retrieved, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    async def reply(self, query: Query) -> Reply:
        """Look the query up by its id."""
        answer = self.answers.get(query.query_id)
        if answer is None:
            return AgentFailure("not_recorded", f"the file has no answer to query {query.query_id!r}")
        if not answer.strip():
            return AgentFailure("empty", f"the file's answer to query {query.query_id!r} is empty")
        return AgentReply(answer, self.documents.get(query.query_id, ()), latency_s=None)

    async def close(self) -> None:
        """Nothing is held."""


def read_recorded(name: str, spec: AgentSpec, corpus: Mapping[str, Document], identity: str) -> RecordedAgent:
    """Read the files of a declaration.

    Raises:
        InputError: a file cannot be read, holds nothing of this agent, two answers to a query, or a document that the
            corpus does not have.
    """
    assert spec.answers is not None  # of every agent of this kind
    called = spec.agent or name
    answers: dict[str, str] = {}
    for row in _own(spec.answers, called, read_rows(spec.answers, ("qid", "answer"), _QUERY_ID)):
        query_id = row.identifier("qid")
        if query_id in answers:
            raise row.error(f"agent {called!r} has answered query {query_id!r} further up")
        answers[query_id] = row.text("answer")
    documents: Mapping[str, tuple[Retrieved, ...]] = {}
    if spec.documents is not None:
        rows = read_rows(spec.documents, ("qid", "did", "document"), {**_QUERY_ID, **DOCUMENT_ALIASES})
        documents = _from_rows(_own(spec.documents, called, rows))
    elif spec.run is not None:
        documents = _from_run(spec.run, corpus)
    return RecordedAgent(name, identity, answers, documents)


def _own(path: Path, agent: str, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of one agent; all of them where the table does not say whose they are."""
    others: dict[str, None] = {}
    found = False
    for row in rows:
        named = row.text("agent")
        if "agent" in row.values and named != agent:
            others[named] = None
            continue
        found = True
        yield row
    if not found:
        known = ", ".join(map(repr, list(others)[:10]))
        raise DataError(path, f"has no row of agent {agent!r}; there are {known} (name one with 'agent')")


def _from_rows(rows: Iterable[Row]) -> dict[str, tuple[Retrieved, ...]]:
    """In the order of the ranks; in the file's own where it has none."""
    found: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        own = found.setdefault(row.identifier("qid"), [])
        rank = row.text("rank")
        if rank and not rank.isdecimal():
            raise row.error("'rank' is not a whole number", rank)
        own.append((int(rank) if rank else len(own) + 1, row))
    return {query_id: tuple(_ranked(entries)) for query_id, entries in found.items()}


def _ranked(entries: list[tuple[float, Row]]) -> Iterator[Retrieved]:
    seen: set[str] = set()
    for rank, (_, row) in enumerate(sorted(entries, key=lambda entry: entry[0]), start=1):
        document = document_of(row)
        if document.doc_id in seen:
            raise row.error("the document stands twice among those of the query", document.doc_id)
        seen.add(document.doc_id)
        score = row.text("score")
        try:
            given = float(score) if score else None
        except ValueError:
            raise row.error("'score' is not a number", score) from None
        columns = {"qid", "agent", "rank", "score"}
        metadata = {key: value for key, value in document.metadata.items() if key not in columns}
        yield Retrieved(document.doc_id, document.text, rank, given, metadata)


def _from_run(path: Path, corpus: Mapping[str, Document]) -> dict[str, tuple[Retrieved, ...]]:
    from retrieval_eval.data.runs import read_run

    found = {}
    for query_id, ranking in read_run(path).rankings.items():
        if missing := [doc_id for doc_id in ranking.doc_ids if doc_id not in corpus]:
            raise InputError(f"{path}: query {query_id!r}: the corpus has no document {missing[0]!r}")
        entries = zip(ranking.doc_ids, ranking.scores, strict=True)
        found[query_id] = tuple(
            Retrieved(doc_id, corpus[doc_id].text, rank, score, corpus[doc_id].metadata)
            for rank, (doc_id, score) in enumerate(entries, start=1)
        )
    return found
