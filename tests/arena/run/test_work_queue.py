"""How a run goes through its plan, and that it makes no prompt of what is known until that may be another."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import Config
from arena.run import assigned, judging
from arena.run.plan import plan
from arena.run.queue import Lookup
from arena.run.writer import Writer
from arena.stages.adaptive import AdaptiveGames
from arena.stages.together import TournamentStages
from arena.store import Store, Wanted
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.judge import Request
from judges.types import Prompt, Task
from tests.support.llm_server import LLMServer, Reply, steady_judge
from tests.support.nugget_judge import nugget_judge, nugget_tournament
from tests.support.tournaments import AGENTS, Quiet, calls, configured, results, run, write_data

QUERIES = [f"q{number}" for number in range(300)]


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[list[Wanted]]:
    told: list[list[Wanted]] = []
    judged, claimed = Lookup.judged, Lookup.claimed

    def telling_judged(lookup: Lookup, wants: Sequence[Wanted]) -> list[Request]:
        requests = judged(lookup, wants)
        known = {request.want for request in requests}
        told.extend([[want for want in wants if want in known]] if known else [])
        return requests

    def telling(lookup: Lookup, wants: Sequence[Wanted], tried: Callable[[str], bool]) -> list[Request]:
        told.append(list(wants))
        return claimed(lookup, wants, tried)

    monkeypatch.setattr(Lookup, "judged", telling_judged)
    monkeypatch.setattr(Lookup, "claimed", telling)
    return told


def test_alone_a_run_keeps_the_plans_order_and_beside_others_it_has_one_of_its_own(
    tmp_path: Path, looked_up: list[list[Wanted]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers are alike, so that nothing has to be asked: the first piece shows that, and the next are larger.

    Pieces get smaller as less is left. Once all is judged, pieces are as large as they come.
    """
    monkeypatch.setattr("arena.run.stage_loop._BLOCK", 16)
    write_data(tmp_path, QUERIES, {(query, agent): "The same." for query in QUERIES for agent in AGENTS})
    config = configured(tmp_path, retrieval=None, criteria=None, pairwise={"judges": ["judge"]})

    def order() -> list[Wanted]:
        looked_up.clear()
        assert run(config).complete
        return [want for piece in looked_up for want in piece]

    first = order()
    sizes = [len(piece) for piece in looked_up]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    planned = list(results(config))
    assert first == planned
    assert (sizes[0], sizes[1], sizes[-2]) == (len(planned) // 32, 256, 16)
    assert order() == planned
    assert [len(piece) for piece in looked_up] == [1024, len(planned) - 1024]
    store = Store.open(config.store)
    Runs(store, config.name).begin(Runner(), {})
    store.close()
    mine, anothers = order(), order()
    assert planned != mine != anothers != planned
    assert set(mine) == set(anothers) == set(planned)
    blocks = [planned[start : start + 16] for start in range(0, len(planned), 16)]
    assert all(mine[mine.index(block[0]) :][: len(block)] == block for block in blocks)


async def test_a_kill_costs_no_more_replies_than_are_allowed_on_their_way_into_the_store() -> None:
    stored, busy = list[int](), threading.Event()
    writer: Writer[int] = Writer(lambda _: busy.wait(20) and None, stored.append, lambda _: 1, most_open=3)
    working = asyncio.create_task(writer.work())
    puts = [asyncio.create_task(writer.put(number)) for number in range(10)]
    await asyncio.sleep(0.1)
    assert sum(put.done() for put in puts) == 3
    busy.set()
    await asyncio.gather(*puts)
    await writer.finish()
    assert stored == list(range(10))
    working.cancel()


async def test_the_last_results_are_kept_without_waiting_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.run.writer._GATHERED_S", 3600)
    stored = list[int]()
    writer: Writer[int] = Writer(lambda _: None, stored.append, lambda _: 1)
    working = asyncio.create_task(writer.work())
    for number in range(3):
        await writer.put(number)
    await asyncio.sleep(0.05)
    assert not stored
    await asyncio.wait_for(writer.finish(), 60)
    assert stored == [0, 1, 2]
    working.cancel()


def test_nothing_that_takes_long_holds_up_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is heard while a run looks up what is known, at its begin, in the middle, and after all has been asked."""
    called: set[str] = set()

    def apart(kind: type, name: str) -> None:
        method: Callable[..., Any] = getattr(kind, name)

        def checked(*arguments: Any, **options: Any) -> Any:
            called.add(name)
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            return method(*arguments, **options)

        monkeypatch.setattr(kind, name, checked)

    for name in ("claim", "assign", "results", "extend"):
        apart(Store, name)
    apart(AdaptiveGames, "choose")
    write_data(tmp_path)
    games = {"judges": ["judge"], "documents": {"threshold": 1}, "schedule": {"kind": "adaptive", "batch": 2}}
    for only in ([Task.RELEVANCE], [Task.CRITERIA], None):
        assert run(configured(tmp_path, pairwise=games), only=only).complete
    with LLMServer(lambda call: Reply(status=401)) as server:
        other = configured(tmp_path, server.openai_url, judge={"concurrency": 1}, pairwise=games, name="other")
        stopped = judging.run(other, Quiet())
    assert stopped.stages[Task.RELEVANCE].left
    assert called == {"claim", "assign", "results", "extend", "choose"}


Made = Callable[[], int]
FUNCTION = "def judge(prompt):\n    return 'A'\n"


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    wants: list[Any] = []
    real = TournamentStages.prompt

    def prompt(self: TournamentStages, want: Any) -> Prompt | None:
        wants.append(want)
        return real(self, want)

    def since() -> int:
        number = len(wants)
        wants.clear()
        return number

    monkeypatch.setattr(TournamentStages, "prompt", prompt)
    return since


def edit(path: Path, found: str, replacement: str) -> None:
    text = path.read_text()
    assert found in text
    path.write_text(text.replace(found, replacement))


def with_own_prompt(folder: Path, server: LLMServer) -> Config:
    own = resources.files("judges.prompts").joinpath("pairwise.yaml").read_text(encoding="utf-8")
    (folder / "own.yaml").write_text(own, encoding="utf-8")
    pairwise = {"judges": ["judge"], "documents": {"threshold": 1}, "prompt": str(folder / "own.yaml")}
    return configured(folder, server.openai_url, pairwise=pairwise)


def test_a_run_or_plan_of_what_is_known_makes_no_prompt(tmp_path: Path, server: LLMServer, made: Made) -> None:
    write_data(tmp_path, answers={("q1", "x"): "The same.", ("q1", "y"): "The same."})
    config = with_own_prompt(tmp_path, server)
    first = run(config)
    assert made() > 0
    again = run(config)
    assert again.complete
    assert made() == 0
    assert {task: (stage.known, stage.wanted) for task, stage in again.stages.items()} == {
        task: (stage.wanted, stage.wanted) for task, stage in first.stages.items()
    }
    rows = {row.task: row for row in plan(config).rows}
    assert made() == 0
    assert (rows[Task.PAIRWISE].wanted, rows[Task.PAIRWISE].identical, rows[Task.PAIRWISE].known) == (12, 2, 10)
    assert not any(row.calls for row in rows.values())


def test_what_judgments_led_to_is_found_without_a_prompt(tmp_path: Path, made: Made) -> None:
    write_data(tmp_path, ["q1"])
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        first = run(config)
        made()
        again = run(config)
    assert made() == 0
    assert {task: stage.known for task, stage in again.stages.items()} == {
        task: stage.wanted for task, stage in first.stages.items()
    }
    assert again.stages[Task.ASSIGNMENT].known > 0


def test_what_judgments_led_to_is_asked_again_where_one_of_them_is_gone(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    with LLMServer(nugget_judge) as server:
        config = nugget_tournament(tmp_path, server.openai_url)
        run(config)
        with closing(sqlite3.connect(config.store)) as store:
            asked = "SELECT judgment_id FROM judgment WHERE task = 'assignment' AND calls > 0 LIMIT 1"
            assert store.execute(f"DELETE FROM judgment WHERE judgment_id IN ({asked})").rowcount == 1
            store.commit()
        assert calls(run(config)) == {Task.ASSIGNMENT: 1}
        assert calls(run(config)) == {}


CHANGES: dict[str, Callable[[Path], None]] = {
    "an answer": lambda folder: edit(folder / "answers.csv", "Agent x says that q1", "Agent x knows that q1"),
    "a document": lambda folder: edit(folder / "documents.csv", "as x tells it", "as x puts it"),
    "a prompt file": lambda folder: edit(folder / "own.yaml", "user: |", "user: |\n  Take care."),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_data_or_prompt_is_judged_anew(change: str, tmp_path: Path, server: LLMServer, made: Made) -> None:
    write_data(tmp_path)
    config = with_own_prompt(tmp_path, server)
    run(config)
    run(config)
    CHANGES[change](tmp_path)
    planned = sum(row.calls for row in plan(config).rows)
    made()
    sent = calls(run(config))
    assert sum(sent.values()) == planned > 0
    assert Task.PAIRWISE in sent
    assert made() > 0
    assert calls(run(config)) == {}
    assert made() == 0


def test_another_source_of_a_judges_function_is_judged_anew(tmp_path: Path, made: Made) -> None:
    write_data(tmp_path)
    function = tmp_path / "own_judge.py"
    function.write_text(FUNCTION)
    judge = {"provider": "python", "function": f"{function}:judge"}
    config = configured(tmp_path, judge=judge, retrieval=None, criteria=None)
    assert calls(run(config)) == {Task.PAIRWISE: 12}
    assert calls(run(config)) == {}
    function.write_text(FUNCTION.replace("'A'", "'B'"))
    made()
    assert sum(row.calls for row in plan(config).rows) == 12
    assert calls(run(config)) == {Task.PAIRWISE: 12}
    assert made() == 24


def test_another_version_of_the_program_makes_prompts_anew_and_finds_the_same(
    tmp_path: Path, server: LLMServer, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    config = configured(tmp_path, server.openai_url)
    run(config)
    made()
    monkeypatch.setattr(assigned, "_code", lambda: "another")
    assert calls(run(config)) == {}
    assert made() == 26


def test_a_secret_text_of_a_bank_that_the_store_does_not_hold_is_graded_anew(tmp_path: Path, made: Made) -> None:
    write_data(tmp_path)
    bank = tmp_path / "bank.csv"
    bank.write_text("qid,item_id,question,secret\nq1,i1,What is open?,false\nq1,i2,What is hidden?,true\n")
    exam = {"judge": "judge", "bank": str(bank)}
    config = configured(tmp_path, retrieval=None, pairwise=None, criteria=None, exam=exam)
    before = calls(run(config))
    assert calls(run(config)) == {}
    edit(bank, "What is hidden?", "What was hidden?")
    assert calls(run(config)) == {Task.GRADING: before[Task.GRADING] // 2}


def test_a_label_that_comes_later_changes_the_prompts_that_show_it(tmp_path: Path, server: LLMServer) -> None:
    """The judge of a document fails at first, so games are judged without it; all ids stand until it is asked again."""
    write_data(tmp_path)
    config = configured(tmp_path, server.openai_url, criteria=None)
    server.script = lambda call: Reply("no label") if b"as x tells it" in call.content else steady_judge(call)
    assert not run(config).complete
    assert calls(run(config)) == {}
    server.script = steady_judge
    assert calls(run(config, retry_failed=True)) == {Task.RELEVANCE: 2, Task.PAIRWISE: 8}
    assert calls(run(config)) == {}


def test_beside_another_run_of_the_tournament_nothing_is_kept_of_ids(tmp_path: Path, made: Made) -> None:
    """It may have made other ids, by another version of the program for one."""
    write_data(tmp_path)
    config = configured(tmp_path, retrieval=None, criteria=None)
    run(config)
    store = Store.open(config.store)
    runs = Runs(store, config.name)
    own = runs.all()[0].run_id
    assert runs.was_alone(own)
    runs.begin(Runner())
    assert not runs.was_alone(own)
    store.close()
