"""Tournaments played from Python."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, suppress
from contextvars import copy_context
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Required, TypeAlias, TypedDict

from judges.errors import InputError
from ragleague.board import Board

if TYPE_CHECKING:
    import pandas as pd

    from arena.config.schema import Config
    from arena.data.dataset import Dataset
    from arena.run.interrupts import Interruption
    from arena.run.ledger import Progress, SettledKind
    from judges.types import Query

_EVERY_S: Final = 0.2
_Given = ParamSpec("_Given")


class Answer(TypedDict, total=False):
    """What an agent's function returns, where it has more to tell than a text.

    Attributes:
        answer: the text; never blank.
        documents: what was retrieved, best first: texts, or mappings with ``id``, ``text`` and ``score``.
        citations: ids of documents, or their numbers from 1; when left out, the ``[1]`` in the answer.
        input_tokens: sent to a model.
        output_tokens: that it wrote.
        cost_usd: dollars.
    """

    answer: Required[str]
    documents: Sequence[str | Mapping[str, Any]]
    citations: Sequence[str | int]
    input_tokens: int
    output_tokens: int
    cost_usd: float


AskedAgent: TypeAlias = (
    "Callable[[Query], Answer | str] | Callable[[Query], Awaitable[Answer | str]] | Mapping[str, Any]"
)
"""A function of a query, or a class or an object that can be called; or what would stand under ``agents`` in a YAML
file, such as ``{"kind": "python", "function": ask, "version": "2", "concurrency": 1}``.

What can be read of a function decides whether it is asked again: its code, and the values and the code of yours that
it uses. ``version`` stands for the rest; a line names it where there is none."""


def open(store: str | Path, tournament: str | None = None) -> Board:  # noqa: A001 - reads as rl.open
    """The results in a store, or of a tournament's YAML file.

    Args:
        store: path or URL of a store, or a configuration.
        tournament: its name; may be left out where there is one alone.

    Raises:
        InputError: there is no such file, store or tournament; or the store has that of another file under this name.
    """
    from arena.cli.sources import location_and_name, open_tournament
    from judges.sections import argument

    source = str(argument("open", str | Path, store))
    with open_tournament(source, tournament) as (_, name):
        return Board(location_and_name(source)[0], name)


Tables: TypeAlias = "str | Path | pd.DataFrame | Iterable[Any] | Mapping[str, Any]"
"""A file or a pattern such as ``answers/*.jsonl``; a frame; a ``Dataset`` of Hugging Face; an ``EvaluationDataset`` of
ragas; a list of dictionaries, of samples of ragas, of test cases of DeepEval, or of other objects with such fields.

Also a list of tables; or for each agent, by its name, a table in memory."""


def load(
    answers: Tables | None = None,
    *,
    queries: Tables | None = None,
    documents: Tables | None = None,
    columns: Mapping[str, str | None] | None = None,
    limit: int | None = None,
) -> Dataset:
    """Read what systems answered, or what they are to be asked, to be given to ``run``.

    Args:
        answers: with columns ``question, answer`` and where there are ``id, agent, contexts, reference``, or the names
            that ragas, DeepEval, promptfoo and others give them. Without a column of the agent it is the file's name.
            May be left out where ``queries`` are given.
        queries: a table of their own; else they come with the answers.
        documents: a table of what was retrieved; else the contexts that come with the answers.
        columns: for a name of ours the tables' column: ``{"answer": "text"}``; ``None``: no column is it.
        limit: the first queries only.

    Raises:
        InputError: a table cannot be read or understood; names file, line and value.
    """
    from arena.data.files import load_dataset
    from judges.sections import argument

    if answers is None and queries is None:
        raise InputError("load: give answers, or queries for agents to answer")
    limit = _limit(limit)
    columns = argument("columns", dict[str, str | None], columns or {})
    return load_dataset(
        () if queries is None else _tables(queries, "queries"),
        () if documents is None else _tables(documents, "documents"),
        () if answers is None else _tables(answers, "answers"),
        columns=columns,
        limit=limit,
    )


def _tables(rows: Any, name: str) -> Any:
    """Rows as ``load_dataset`` takes them."""
    from arena.data.records import Rows as Table

    if isinstance(rows, str | Path):
        if not str(rows):
            raise InputError(f"{name}: an empty name is given for a file")
        return rows
    if hasattr(rows, "iterrows"):
        if not rows.columns.is_unique:
            repeated = rows.columns[rows.columns.duplicated()][0]
            raise InputError(f"{name}: column {str(repeated)!r} stands twice; rename one")
        return Table(name, rows.to_dict("records"))
    if isinstance(rows, Mapping):
        return _by_agent(rows, name)
    is_row = _row(rows) is not None or not isinstance(rows, Iterable) or not getattr(rows, "shape", True)
    listed = [rows] if is_row else list(rows)
    read = [_row(one) for one in listed]
    if None not in read:
        return Table(name, [row for row in read if row is not None])
    wrong = [one for one in listed if is_row or isinstance(one, bytes) or not isinstance(one, str | Path | Iterable)]
    if wrong:
        raise InputError(f"{name}: give files, frames, dictionaries or samples, and not {type(wrong[0]).__name__}")
    tables = [_tables(one, f"{name} {number}") for number, one in enumerate(listed, start=1)]
    if any(isinstance(table, list) for table in tables):
        raise InputError(f"{name}: give a list of files, frames, dictionaries or samples, and no list of lists")
    return tables


def _by_agent(rows: Mapping[Any, Any], name: str) -> list[Any]:
    """A table for each agent, by its name."""
    if not rows:
        raise InputError(f"{name}: the table has no rows; add at least one")
    if not all(str(agent).strip() for agent in rows):
        raise InputError(f"{name}: a table stands under an empty name; name its agent")
    tables = [_tables(table, str(agent)) for agent, table in rows.items()]
    if any(isinstance(table, str | Path | list) for table in tables):
        raise InputError(f"{name}: for each agent a table in memory is asked for, such as a frame or a list")
    return tables


def _limit(given: Any) -> int | None:
    from judges.sections import Count, argument

    limit: int | None = None if given is None else argument("limit", Count, given)
    return limit


def _row(one: Any) -> Mapping[str, Any] | None:
    """The fields of a dictionary or an object, such as a sample of ragas or a test case of DeepEval.

    ``None``: it is no row, though it may hold some.
    """
    if isinstance(one, Mapping):
        return one
    if hasattr(one, "model_dump"):  # of pydantic; a field that says nothing is no column
        fields: Mapping[str, Any] = one.model_dump(exclude_defaults=True)
        return fields
    if isinstance(one, str | Path | Iterable) or not hasattr(one, "__dict__"):
        return None
    return {name: value for name, value in vars(one).items() if not name.startswith("_")}


def run(
    config: str | Path | Dataset,
    *,
    agents: Mapping[str, AskedAgent] | None = None,
    judge: str | Callable[..., Any] | Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    limit: int | None = None,
    progress: bool = True,
    retry_failed: bool = False,
) -> Board:
    """Play what is missing of a tournament, and give its results; what its store holds is not asked again.

    What is missing afterwards, and why, says ``board``; ``board.complete`` is false then.

    Args:
        config: the tournament's YAML file; or what ``load`` gives: then every pair of agents meets on every query.
        agents: of loaded data: systems to ask, by their names, beside those whose answers were loaded. An agent that
            changed is asked again; see ``AskedAgent`` for what is seen.
        judge: of loaded data: a name such as ``openai/gpt-4.1-mini``; a function, or a class or an object that can be
            called; or what would stand under ``judges`` in a YAML file, such as
            ``{"provider": "python", "function": ask, "version": "2"}``.
        store: of loaded data where results are kept; ``ragleague.db`` when left out.
        limit: the first queries of a YAML file's data only.
        progress: show bars while agents and judges are asked.
        retry_failed: ask again about all failures, also refused or unusable replies.

    Raises:
        InputError: configuration, data, prompts or judges cannot be used. Nothing was sent then.
        StoreError: the store cannot be written.
        KeyboardInterrupt: Ctrl-C. Calls in flight were finished, or with a second Ctrl-C given up; what was paid for is
            kept, and running again goes on.
    """
    from arena.config.from_answers import STORE, assumed, assumed_content
    from arena.config.schema import load_config
    from arena.run.interrupts import interruptible
    from judges.sections import argument

    if isinstance(config, str | Path):
        if agents or judge is not None or store is not None:
            raise InputError(f"run: {config} names its agents, its judge and its store itself")
        data, loaded = None, load_config(Path(config))
        limit = _limit(limit)
        loaded = loaded if limit is None else loaded.limited(limit)
    else:
        if not hasattr(config, "agents"):
            raise InputError(f"run: give a YAML file, or what rl.load read, and not {type(config).__name__}")
        if judge is None:
            raise InputError("run: loaded data need a judge, such as judge='openai/gpt-4.1-mini'")
        if limit is not None:
            raise InputError("run: limit loaded data with load(..., limit=N)")
        given: Any = agents or {}  # whatever it is
        if not isinstance(given, Mapping) or not all(map(_may_be_asked, given.items())):
            raise InputError("run: name each agent's function, such as agents={'new': my_function}")
        kept = str(argument("store", str | Path, STORE if store is None else store))
        data = config
        loaded = assumed(
            assumed_content(["(loaded)"], data.agents, judge, columns={}, limit=None, store=kept, asked=agents)
        )
    with interruptible() as interruption:
        _outside_loops(lambda: _play(loaded, data, progress=progress, retry_failed=retry_failed), interruption)
    return Board(loaded.store, loaded.name)


def _twin(work: Callable[_Given, Board]) -> Callable[_Given, Coroutine[Any, Any, Board]]:
    @wraps(work)
    async def awaited(*args: _Given.args, **options: _Given.kwargs) -> Board:
        from arena.run.interrupts import interruptible

        with interruptible() as interruption:
            running = asyncio.create_task(asyncio.to_thread(work, *args, **options))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                while not running.done():
                    interruption.request()
                    with suppress(asyncio.CancelledError):  # again: the run ends at once
                        await asyncio.wait([running])
                raise

    return awaited


arun = _twin(run)
"""The same as ``run``, for programs with a loop of their own.

When its task is cancelled, calls in flight are finished and kept, and no further one is made; then it raises
``CancelledError``. Cancelled a second time it gives up what is in flight."""


def _may_be_asked(agent: tuple[Any, Any]) -> bool:
    name, asked = agent
    return isinstance(name, str) and (callable(asked) or isinstance(asked, Mapping))


def _play(config: Config, data: Dataset | None, *, progress: bool, retry_failed: bool) -> None:
    from arena.boards.kept import keep_boards
    from arena.cli.run_lines import print_part
    from arena.cli.trace import watching
    from arena.run.answers import AgentsRun
    from arena.run.interrupts import interruptible
    from arena.run.pipeline import RunPart, play

    silent: list[str] = []

    def say(part: RunPart) -> None:
        if isinstance(part, AgentsRun):
            silent.extend(part.silent)
        if progress:
            print_part(part)

    def told() -> AbstractContextManager[Progress]:
        if progress and _in_notebook():
            return _Line()
        return watching(shown=progress)

    # A notebook paints what comes by standard error red, as if something had gone wrong.
    with redirect_stderr(sys.stdout) if _in_notebook() else nullcontext(), interruptible() as interruption:
        played = play(config, told, say, retry_failed=retry_failed, data=data)
    if interruption.requested:
        return
    if played.board is None:
        raise InputError("; ".join(["run: nothing was judged", *silent]))
    keep_boards(config.store, played.board)


class _Line:
    """One line of a notebook's cell, written over while a run goes on."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._written_at = 0.0

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        print(f"\r{'':<60}\r", end="", file=sys.stderr, flush=True)  # noqa: T201

    def begin(self, task: str, wanted: int) -> None:
        """A stage begins."""
        self._wanted[task], self._settled[task], self._failed[task] = wanted, 0, 0
        self._written_at = 0.0  # each stage is named, however short it is

    def more(self, task: str, wanted: int) -> None:
        """More wants than were known when it began."""
        self._wanted[task] += wanted

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None:  # noqa: ARG002 - the interface's
        """One more want is settled."""
        self._settled[task] += 1
        self._failed[task] += kind == "failed"
        if time.monotonic() - self._written_at > _EVERY_S:
            self._written_at = time.monotonic()
            failed = f", {self._failed[task]} failed" if self._failed[task] else ""
            from arena.present.numbers import printable

            line = f"{printable(task)}: {self._settled[task]:,} of {self._wanted[task]:,}{failed}"
            print(f"\r{line:<60}", end="", file=sys.stderr, flush=True)  # noqa: T201


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _outside_loops(work: Callable[[], None], interruption: Interruption) -> None:
    """Do work that has an event loop of its own, which a thread cannot have beside another, such as a notebook's.

    Raises:
        KeyboardInterrupt: Ctrl-C, as soon as the work has ended by it.
    """
    try:
        asyncio.get_running_loop()
        runs = True
    except RuntimeError:
        runs = False
    try:
        if runs:
            _in_thread(work, interruption)
        else:
            work()
    finally:
        interruption.require_none()


def _in_thread(work: Callable[[], None], interruption: Interruption) -> None:
    """Do work in a thread and wait for its end, also where a signal asks for that."""
    with interruption.on_signals(), ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, work).result()
