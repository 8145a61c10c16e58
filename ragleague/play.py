"""Run tournaments from Python: load answers, ask agents and judges, open the results."""

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

from arena.cli.sources import open_tournament, read_source
from arena.config.from_answers import STORE, assumed, assumed_content
from arena.config.schema import Config, load_config
from arena.data.dataset import Dataset
from arena.data.files import load_dataset
from arena.present.numbers import printable
from arena.run.interrupts import Interruption, interruptible
from judges.errors import InputError
from judges.sections import Count, argument
from ragleague.board import Board
from retrieval_eval.data.rows import Rows as Table

if TYPE_CHECKING:
    import pandas as pd

    from arena.run.ledger import Progress, SettledKind
    from judges.types import Query

_EVERY_S: Final = 0.2
_Given = ParamSpec("_Given")


class Answer(TypedDict, total=False):
    """The return value of an agent's function that has more to report than the text of the answer.

    Attributes:
        answer: text of the answer; must not be blank.
        documents: retrieved documents, best first: texts, or mappings with ``id``, ``text`` and ``score``.
        citations: ids of the cited documents, or their numbers from 1; by default the marks such as ``[1]`` in the
            answer.
        input_tokens: number of tokens sent to a model.
        output_tokens: number of tokens that the model wrote.
        cost_usd: cost of the answer in dollars.

    Example:
        >>> rl.Answer(answer="To calm down [1].", documents=["Cats purr to calm down."], cost_usd=0.001)["answer"]
        'To calm down [1].'
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
"""An agent: a function of a query or any callable object; or a mapping as under ``agents`` in a YAML file, such as
``{"kind": "python", "function": ask, "version": "2", "concurrency": 1}``.

ragleague asks an agent again if the agent has changed. It compares the function's code, and the values and your other
code that the function uses; give a ``version`` for everything else. If ragleague cannot compare a part and there is no
version, a message says so."""


def open(  # noqa: A001 - reads as rl.open
    store: str | Path, tournament: str | None = None, *, group: str = "", by: str = ""
) -> Board:
    """Open the results in a store.

    Args:
        store: path or URL of a store, or the path of a tournament's YAML file.
        tournament: name of the tournament; optional if the store has only one tournament.
        group: a column of the queries and a value, as in ``"kind=factual"``: only the queries with this value count.
        by: a column of the queries: the leader is tested on its groups alone, not on those of all columns.

    Raises:
        InputError: there is no such file, store, tournament, group or column; or the tournament of this name in the
            store comes from another YAML file.

    Example:
        >>> board = rl.open("demo/rag-handbook.db")
        >>> board.scores("exam").columns.tolist()
        ['agent', 'score', 'value', 'low', 'high', 'queries']
    """
    source = str(argument("open", str | Path, store))
    with open_tournament(source, tournament) as (_, name):
        return Board(read_source(source)[0], name, group=group, by=by)


Tables: TypeAlias = "str | Path | pd.DataFrame | Iterable[Any] | Mapping[str, Any]"
"""A file or a pattern such as ``answers/*.jsonl``; a data frame; a Hugging Face ``Dataset``; a ragas
``EvaluationDataset``; or a list of dictionaries, ragas samples, DeepEval test cases or other objects with such fields.

Also a list of these, or a mapping from agents' names to tables in memory."""


def load(
    answers: Tables | None = None,
    *,
    queries: Tables | None = None,
    documents: Tables | None = None,
    columns: Mapping[str, str | list[str] | None] | None = None,
    limit: int | None = None,
) -> Dataset:
    """Read the answers of systems, or the queries to ask them, and return a data set for ``run``.

    Args:
        answers: columns ``question, answer`` and optionally ``id, agent, contexts, reference``, or the names that
            ragas, DeepEval, promptfoo and others use. Without an agent column, the file's name is the agent. Optional
            if ``queries`` are given.
        queries: a table of queries, if they do not come with the answers.
        documents: a table of retrieved documents, if they do not come with the answers as contexts.
        columns: the table's column for a name that ragleague uses, as in ``{"answer": "text"}``; ``None`` if the table
            has no such column; a list of columns of answers if each agent has one.
        limit: number of queries to read, from the first; by default all.

    Raises:
        InputError: a table cannot be read or understood; the message names file, line and value.

    Example:
        >>> data = rl.load([{"question": "Why do cats purr?", "answer": "To calm down.", "agent": "new"}])
        >>> data.agents
        ('new',)
    """
    if answers is None and queries is None:
        raise InputError("load: give answers, or queries for agents to answer")
    limit = _limit(limit)
    columns = argument("columns", dict[str, str | list[str] | None], columns or {})
    return load_dataset(
        () if queries is None else _tables(queries, "queries"),
        () if documents is None else _tables(documents, "documents"),
        () if answers is None else _tables(answers, "answers"),
        columns=columns,
        limit=limit,
    )


def _tables(rows: Any, name: str) -> Any:
    """Convert rows, or the path of a file, to tables in the form that ``load_dataset`` takes."""
    if isinstance(rows, str | Path):
        if not str(rows):
            raise InputError(f"{name}: the name of a file is empty; name a file")
        return rows
    if hasattr(rows, "iterrows"):
        if not rows.columns.is_unique:
            repeated = rows.columns[rows.columns.duplicated()][0]
            raise InputError(f"{name}: column {str(repeated)!r} occurs twice; rename one")
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
    """Convert a mapping from agents to rows to tables in the form that ``load_dataset`` takes."""
    if not rows:
        raise InputError(f"{name}: the table has no rows; add at least one")
    if not all(str(agent).strip() for agent in rows):
        raise InputError(f"{name}: a table has an empty name; name its agent")
    tables = [_tables(table, str(agent)) for agent, table in rows.items()]
    if any(isinstance(table, str | Path | list) for table in tables):
        raise InputError(f"{name}: give each agent a table in memory, such as a frame or a list of rows")
    return tables


def _limit(given: Any) -> int | None:
    limit: int | None = None if given is None else argument("limit", Count, given)
    return limit


def _row(one: Any) -> Mapping[str, Any] | None:
    """The fields of one row, which is a dictionary or an object such as a ragas sample or a DeepEval test case.

    ``None`` if the value is not a row, for example if it is a list of rows.
    """
    if isinstance(one, Mapping):
        return one
    if hasattr(one, "model_dump"):  # a pydantic model; a field left at its default is no column
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
    """Run a tournament and return its results. No call is repeated whose result is in the store already.

    If results are still missing afterwards, ``board.complete`` is false and the printed board says why.

    Args:
        config: the tournament's YAML file; or the result of ``load``, for a tournament in which every pair of agents
            meets on every query.
        agents: for loaded data, agents to ask, by name, in addition to the agents whose answers were loaded. A changed
            agent is asked again, see ``AskedAgent``.
        judge: for loaded data, a model such as ``openai/gpt-4.1-mini``, a callable, or a mapping as under ``judges``
            in a YAML file, such as ``{"provider": "python", "function": ask, "version": "2"}``.
        store: for loaded data, path or URL of the store; ``ragleague.db`` by default.
        limit: for a YAML file, number of queries to use, from the first; by default all.
        progress: whether to show progress bars.
        retry_failed: whether to retry all failures, including refusals and unusable replies.

    Raises:
        InputError: configuration, data, prompts or judges are invalid; nothing was sent.
        StoreError: the store cannot be written.
        KeyboardInterrupt: you pressed Ctrl-C. Calls in flight were finished and their results stored; after a second
            Ctrl-C they were abandoned. Call ``run`` again to continue.

    Example:
        >>> rows = [{"question": f"What is {n} + {n}?", "answer": f"It is {2 * n}."} for n in range(3)]
        >>> wrong = [{**row, "answer": "Nobody knows."} for row in rows]
        >>> data = rl.load({"new": rows, "old": wrong})
        >>> board = rl.run(data, judge="lexical", store="sums.db", progress=False)
        >>> board.complete
        True
    """
    if isinstance(config, str | Path):
        if agents or judge is not None or store is not None:
            raise InputError(f"run: {config} names agents, judge and store itself; leave these arguments out")
        data, loaded = None, load_config(Path(config))
        limit = _limit(limit)
        loaded = loaded if limit is None else loaded.limited(limit)
    else:
        if not hasattr(config, "agents"):
            raise InputError(f"run: give a YAML file or the result of rl.load, and not {type(config).__name__}")
        if judge is None:
            raise InputError("run: loaded data need a judge, such as judge='openai/gpt-4.1-mini'")
        if limit is not None:
            raise InputError("run: limit is only for a YAML file; limit loaded data with load(..., limit=N)")
        asked: Any = agents or {}  # of any type, so far
        if not isinstance(asked, Mapping) or not all(map(_may_be_asked, asked.items())):
            raise InputError("run: name each agent's function, such as agents={'new': my_function}")
        location = str(argument("store", str | Path, STORE if store is None else store))
        data = config
        loaded = assumed(
            assumed_content(["(loaded)"], data.agents, judge, columns={}, limit=None, store=location, asked=agents)
        )
    with interruptible() as interruption:
        _outside_loops(lambda: _play(loaded, data, progress=progress, retry_failed=retry_failed), interruption)
    return Board(loaded.store, loaded.name)


def _twin(work: Callable[_Given, Board]) -> Callable[_Given, Coroutine[Any, Any, Board]]:
    @wraps(work)
    async def awaited(*args: _Given.args, **options: _Given.kwargs) -> Board:
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
arun.__doc__ = """The same as ``run``, for programs with an event loop.

If the task is cancelled, ``arun`` starts no more calls, finishes and keeps those in flight, and raises
``CancelledError``. If cancelled a second time, it abandons them.

Example:
    >>> import asyncio
    >>> board = asyncio.run(rl.arun("demo/tournament.yaml", progress=False))
    >>> board.complete
    True
"""


def _may_be_asked(agent: tuple[Any, Any]) -> bool:
    name, asked = agent
    return isinstance(name, str) and (callable(asked) or isinstance(asked, Mapping))


def _play(config: Config, data: Dataset | None, *, progress: bool, retry_failed: bool) -> None:
    # Late: whoever only opens results does not pay for what runs a tournament.
    from arena.boards.leaderboard import keep_boards
    from arena.cli.progress import print_part, watching
    from arena.run.answers import AgentsRun
    from arena.run.pipeline import RunPart, play

    silent: list[str] = []

    def say(part: RunPart) -> None:
        if isinstance(part, AgentsRun):
            silent.extend(part.silent)
        if progress:
            print_part(part)

    def watched() -> AbstractContextManager[Progress]:
        if progress and _in_notebook():
            return _Line()
        return watching(shown=progress)

    # A notebook shows standard error in red, as if something had gone wrong.
    with redirect_stderr(sys.stdout) if _in_notebook() else nullcontext(), interruptible() as interruption:
        board = play(config, watched, say, retry_failed=retry_failed, data=data)
    if interruption.requested:
        return
    if board is None:
        raise InputError("; ".join(["run: nothing was judged", *silent]))
    keep_boards(config.store, board)


class _Line:
    """Shows progress in one line of a notebook cell, which is overwritten during the run."""

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
        self._wanted[task], self._settled[task], self._failed[task] = wanted, 0, 0
        self._written_at = 0.0  # show each stage at least once, however short

    def more(self, task: str, wanted: int) -> None:
        """Raise the stage's total by ``wanted``: results led to further judgments."""
        self._wanted[task] += wanted

    def count(self, task: str, kind: SettledKind, cost_usd: float | None) -> None:  # noqa: ARG002 - the interface's
        self._settled[task] += 1
        self._failed[task] += kind == "failed"
        if time.monotonic() - self._written_at > _EVERY_S:
            self._written_at = time.monotonic()
            failed = f", {self._failed[task]} failed" if self._failed[task] else ""
            line = f"{printable(task)}: {self._settled[task]:,} of {self._wanted[task]:,}{failed}"
            print(f"\r{line:<60}", end="", file=sys.stderr, flush=True)  # noqa: T201


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _outside_loops(work: Callable[[], None], interruption: Interruption) -> None:
    """Call ``work``, which starts an event loop; in a new thread if this thread already runs a loop, as in a notebook.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C; raised once the work has stopped.
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
    """Call ``work`` in a thread and wait until it ends, even after a signal that asks it to stop."""
    with interruption.on_signals(), ThreadPoolExecutor(1) as pool:
        pool.submit(copy_context().run, work).result()
