"""Judges that ask in batches: the same judgments for half the price, and each paid once however a batch ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import judges.batches
from arena.store import Store
from arena.store.batches import StoredBook, open_batches
from judges.batch_servers import Batch, OpenAIBatches
from judges.types import JudgeFailure, Judgment, Task
from tests.conftest import CLI
from tests.support.batched import VENDORS, as_yaml, batched, hurry, labels_only, paid_once, under_way
from tests.support.children import begin
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.tournaments import outcomes, results, run


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.mark.parametrize("vendor", VENDORS)
def test_batches_bring_the_judgments_of_direct_calls_at_the_declared_price(
    tmp_path: Path, server: LLMServer, vendor: str
) -> None:
    config = batched(tmp_path, server, vendor)
    summary = run(config)
    assert summary.complete
    assert summary.waiting == under_way(config) == []
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 18], "documents, then what shows them"
    assert paid_once(server)
    assert {call.path for call in server.calls} <= {"/v1/chat/completions", "/v1/messages"}

    direct = batched(tmp_path, server, vendor, mode="direct")
    again = run(direct)
    assert {stage.calls for stage in again.stages.values()} == {0}, "a judgment is the same however it was asked"
    alone = direct.model_copy(update={"store": str(tmp_path / "alone.db")})
    run(alone)
    assert outcomes(alone) == outcomes(config)
    costs = [sum(stage.cost_usd for stage in run_.stages.values()) for run_ in (summary, run(alone))]
    assert costs[0] > 0 == costs[1]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_run_killed_between_upload_and_download_resumes_and_pays_once(
    tmp_path: Path, server: LLMServer, vendor: str
) -> None:
    server.batches.held = True
    config = batched(tmp_path, server, vendor)
    child = begin("run", as_yaml(tmp_path, server, vendor), folder=tmp_path)
    wait_for(lambda: has_looked(server))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert under_way(config) == [8]
    server.batches.held = False
    assert run(config).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 18]
    assert paid_once(server)


def has_looked(server: LLMServer) -> bool:
    return any(made.looked for made in server.batches.made.values())


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(600):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within thirty seconds")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_never_came_there_is_handed_in_again(tmp_path: Path, server: LLMServer, vendor: str) -> None:
    server.batches.deaf = 1
    assert run(batched(tmp_path, server, vendor)).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 18]


def test_nobody_leaves_before_a_batch_has_come_there(tmp_path: Path, server: LLMServer) -> None:
    server.batches.deaf, server.batches.held = 1, True
    config = labels_only(tmp_path, server)
    run(config, wait=False)
    assert [len(made.requests) for made in server.batches.made.values()] == under_way(config) == [8]


def test_nobody_leaves_between_two_looks_for_a_batch(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wake_early(_worker: judges.batches.BatchProvider) -> None:
        await asyncio.sleep(0.01)

    monkeypatch.setattr(judges.batches, "_LEAST_S", 0.3)
    monkeypatch.setattr(judges.batches.BatchProvider, "_pause", wake_early)
    server.batches.deaf, server.batches.held = 1, True
    config = labels_only(tmp_path, server)
    run(config, wait=False)
    assert [len(made.requests) for made in server.batches.made.values()] == under_way(config) == [8]


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_the_server_fails_at_goes_into_the_next_batch_and_what_it_refuses_is_a_failure(
    tmp_path: Path, server: LLMServer, vendor: str
) -> None:
    broken = set(range(0, 8, 2))

    def script(call: Call) -> Reply:
        if len(server.calls) - 1 in broken:
            return Reply("busy", status=500)
        return Reply("no", status=400) if b"Agent x says that q1" in call.content else steady_judge(call)

    server.script = script
    config = batched(tmp_path, server, vendor)
    summary = run(config)
    assert [len(made.requests) for made in server.batches.made.values()][:2] == [8, 4]
    assert summary.stages[Task.RELEVANCE].judged == 8
    assert summary.stages[Task.RELEVANCE].calls == 12
    failed = [result for result in results(config).values() if isinstance(result, JudgeFailure)]
    assert len(failed) == summary.stages[Task.PAIRWISE].failed + summary.stages[Task.CRITERIA].failed == 4 + 1
    assert {failure.cause for failure in failed} == {"bad_request"}
    assert under_way(config) == []


def test_a_refused_reply_is_asked_again_in_a_batch_and_found_there_after_a_kill(
    tmp_path: Path, server: LLMServer
) -> None:
    server.script = lambda call: Reply("hm") if len(call.body["messages"]) == 2 else steady_judge(call)
    server.batches.looks = 2
    config = labels_only(tmp_path, server)
    while not (summary := run(config, wait=False)).complete:  # each of these runs leaves what it has asked for
        assert summary.stages[Task.RELEVANCE].failed == 0
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 8]
    assert paid_once(server, 16)
    judged = [result for result in results(config).values() if isinstance(result, Judgment)]
    assert {(result.calls, result.rejected) for result in judged} == {(2, ("hm",))}


def test_batches_are_left_and_shown_and_fetched_by_a_later_run(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    server.batches.held = True
    path = as_yaml(tmp_path, server)
    left = cli("run", path, "--no-wait")
    assert left.status == 3
    assert "judge 'judge' waits for 8 replies in 1 batch since" in left.err
    assert "run again to fetch their replies" in left.err
    assert "judge 'judge' waits for 8 replies" in cli("failures", path).out
    (shown,) = json.loads(cli("batches", path, "--format", "json").out)
    assert (shown["id"], shown["state"], shown["open"]) == ("batch_1", "handed in", 8)

    stages = {row["task"]: row for row in json.loads(cli("plan", path, "--format", "json").out)["stages"]}
    assert (stages["relevance"]["waiting"], stages["relevance"]["calls"]) == (8, 0)
    direct = tmp_path / "direct.yaml"
    direct.write_text(path.read_text().replace('"mode":"batch"', '"mode":"direct"'))
    refused = cli("run", direct)
    assert refused.status == 2
    assert "judges.judge: 8 of its requests are in batches that are paid for" in refused.err

    server.batches.held = False
    assert cli("run", path).status == 0
    assert paid_once(server)
    assert cli("batches", path).out == "0 under way\n"


def test_ctrl_c_leaves_a_batch_to_the_server(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    server.batches.held = True
    path = as_yaml(tmp_path, server)
    person = Thread(target=lambda: (wait_for(lambda: has_looked(server)), os.kill(os.getpid(), signal.SIGINT)))
    person.start()
    left = cli("run", path)
    person.join()
    assert left.status == 3
    assert "relevance: 0 judged, 0 needed no call, 0 failed, 8 left of 8" in left.err
    assert "the server goes on with the batches" in left.err
    server.batches.held = False
    assert cli("run", path).status == 0
    assert paid_once(server)


def test_a_forgotten_batch_is_asked_anew(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    server.batches.held = True
    path = as_yaml(tmp_path, server)
    cli("run", path, "--no-wait")
    wrong = cli("batches", path, "--forget", "batch_2")
    assert wrong.status == 2
    assert wrong.err == "error: --forget batch_2: there is no such batch; did you mean 'batch_1'?\n"
    assert cli("batches", path, "--forget", "batch_1").out == "0 under way\n"
    server.batches.held = False
    assert cli("run", path).status == 0
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 8, 18]


def test_what_does_not_fit_one_batch_goes_into_several(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIBatches, "most_requests", 3)
    config = labels_only(tmp_path, server)
    assert run(config).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [3, 3, 2]
    assert paid_once(server, 8)


def test_a_budget_bounds_what_waits_together(tmp_path: Path, server: LLMServer) -> None:
    """Before the first reply, a request counts with the cost of the longest reply that it allows."""
    config = labels_only(tmp_path, server, max_cost_usd=0.03, max_tokens=1000)
    assert run(config).complete
    first, *rest = [len(made.requests) for made in server.batches.made.values()]
    assert first == 3, "a thousand tokens at 8 dollars per million, and the prompt"
    assert first + sum(rest) == 8


def test_a_batch_that_is_refused_as_a_whole_stops_the_judge(tmp_path: Path, server: LLMServer) -> None:
    server.batches.refuses = lambda batch: {"code": "model_not_found", "message": "no such model"}
    config = batched(tmp_path, server)
    summary = run(config)
    assert summary.stopped == ["judge 'judge' stopped: gpt-x: HTTP 400: no such model; check 'model' and 'base_url'"]
    assert {getattr(result, "cause", None) for result in results(config, Task.RELEVANCE).values()} == {"unknown_model"}
    assert server.batches.files == {}
    server.batches.refuses = lambda batch: None
    assert run(config).complete


def test_too_many_waiting_tokens_make_smaller_batches(tmp_path: Path, server: LLMServer) -> None:
    too_much = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
    server.batches.refuses = lambda batch: too_much if batch == 0 else None
    config = labels_only(tmp_path, server)
    assert run(config).complete
    assert [len(made.requests) for made in server.batches.made.values()][:2] == [8, 4]


def test_a_batch_that_the_key_does_not_reach_is_kept(tmp_path: Path, server: LLMServer) -> None:
    server.batches.held = True
    config = batched(tmp_path, server)
    run(config, wait=False)
    hidden, server.batches.made = server.batches.made, {}
    summary = run(config)
    assert "no such batch" in summary.stopped[0]
    assert under_way(config) == [8]
    server.batches.held, server.batches.made = False, hidden
    assert run(config).complete
    assert paid_once(server)


def test_a_server_out_of_reach_ends_the_run_and_not_its_batches(tmp_path: Path) -> None:
    with LLMServer() as server:
        server.batches.held = True
        run(batched(tmp_path, server), wait=False)
    gone = run(batched(tmp_path, server, max_retry_s=0.2))
    assert gone.stopped[0].endswith("the batches that were submitted continue on the server")
    assert under_way(batched(tmp_path, server)) == [8]
    with LLMServer(port=server.port) as back:
        back.batches.made, back.batches.files = server.batches.made, server.batches.files
        assert run(batched(tmp_path, back)).complete
        assert paid_once(back)


@pytest.mark.parametrize("vendor", VENDORS)
def test_results_that_break_off_and_answers_that_are_no_batch_are_asked_for_again(
    tmp_path: Path, server: LLMServer, vendor: str
) -> None:
    server.batches.garbled, server.batches.cut = 1, 1
    config = batched(tmp_path, server, vendor)
    assert run(config).complete
    assert (server.batches.garbled, server.batches.cut) == (0, 0)
    assert paid_once(server)


def test_a_store_puts_a_request_into_one_batch_only(store_location: str) -> None:
    store = Store.create(store_location)
    before = store.changes()
    book = StoredBook(store, "judge", "openai", "gpt-x")
    early, late = Batch("m1", 1.0, 2), Batch("m2", 2.0, 2)
    assert book.place(early, {"a": "ja", "b": "jb"}) == {"a": early, "b": early}
    book.submitted("m1", "batch_1")
    placed = book.place(late, {"b": "jb", "c": "jc"})
    assert placed == {"b": Batch("m1", 1.0, 2, "batch_1"), "c": Batch("m2", 2.0, 1)}
    assert book.custom_ids("m2") == {"c"}
    assert store.changes() == before, "nothing that is shown was made of batches"
    failure = JudgeFailure("ja", "contract", "no")
    store.save([(Task.PAIRWISE, "p@1", failure)])
    book.free(["b"])
    assert [(each.batch.marker, each.open) for each in open_batches(store)] == [("m2", 1)]
    book.drop("m2")
    assert open_batches(store) == []
    store.close()


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ({"provider": "lexical", "model": "", "base_url": None}, "provider 'lexical' has no 'mode: batch'"),
        ({"requests_per_minute": 5}, "'mode: batch' has no limits per minute"),
        ({"mode": "direct", "batch_requests": 5}, "'batch_requests' needs 'mode: batch'"),
    ],
)
def test_declarations_that_make_no_sense_are_refused(
    tmp_path: Path, server: LLMServer, judge: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        batched(tmp_path, server, **judge)


def known_as(location: str, remote_id: str | None) -> None:
    store = Store.open(location)
    named = "NULL" if remote_id is None else f"'{remote_id}'"
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE batch SET remote_id = {named}")
    store.close()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_whose_making_was_not_answered_is_found_again_though_lists_lag(
    tmp_path: Path, server: LLMServer, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges.batches, "_SEARCH_S", 60)
    server.batches.answer_lost, server.batches.lag = 1, 3
    assert run(batched(tmp_path, server, vendor)).complete
    assert server.batches.lag == 0
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 18]
    assert paid_once(server)


def test_a_later_run_looks_for_a_batch_as_long_as_the_one_that_handed_it_in(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges.batches, "_SEARCH_S", 60)
    config = labels_only(tmp_path, server)
    server.batches.held = True
    run(config, wait=False)
    known_as(config.store, None)  # killed before the answer came
    server.batches.held, server.batches.lag = False, 2
    assert run(config, wait=False).complete
    assert paid_once(server, 8)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_cancelled_batch_keeps_its_replies_and_is_asked_again_only_by_a_word(
    tmp_path: Path, server: LLMServer, vendor: str, cli: CLI
) -> None:
    server.batches.held, server.batches.done = True, 3
    path = as_yaml(tmp_path, server, vendor)
    cli("run", path, "--no-wait")
    (made,) = server.batches.made.values()
    cancelled = cli("batches", path, "--cancel", made.remote_id)
    assert cancelled.status == 0
    assert f"batch {made.remote_id} is being cancelled" in cancelled.err
    assert "1 under way" in cancelled.out

    said = cli("run", path)
    line = f"judge 'judge' stopped: batch {made.remote_id} was cancelled: 3 of 8 replies are kept; "
    assert line + "'ragleague run CONFIG --retry-failed' asks for the rest again" in said.err
    assert said.status == 3
    server.batches.held = False
    assert (
        "relevance: 0 judged, 3 needed no call, 5 failed, 0 left of 8; 0 calls"
        in cli("run", path, "--stage", "relevance").err
    )
    assert [row["cause"] for row in json.loads(cli("failures", path, "--format", "json").out)] == ["cancelled"] * 5
    assert [len(each.requests) for each in server.batches.made.values()] == [8]

    assert cli("run", path, "--retry-failed").status == 0
    assert [len(each.requests) for each in server.batches.made.values()] == [8, 5, 18]
    assert paid_once(server)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_expires_stops_the_judge_and_the_next_run_asks_for_the_rest(
    tmp_path: Path, server: LLMServer, vendor: str
) -> None:
    server.batches.expires = lambda batch, place: batch == 0 and place % 2 == 0
    config = batched(tmp_path, server, vendor)
    summary = run(config)
    assert [line.split(": ", 1)[1].split(" ", 2)[2] for line in summary.stopped] == [
        "has expired: 4 of 8 replies are kept; the next run asks for the rest again"
    ]
    assert summary.stages[Task.RELEVANCE].judged == 4
    assert run(config).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 4, 18]
    assert paid_once(server)


def test_what_cannot_be_cancelled_is_said(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    server.batches.held = True
    path = as_yaml(tmp_path, server)
    cli("run", path, "--no-wait")
    store = json.loads(path.read_text())["store"]
    assert "name the tournament's YAML file" in cli("batches", store, "--cancel", "all").err
    direct = tmp_path / "direct.yaml"
    direct.write_text(path.read_text().replace('"mode":"batch"', '"mode":"direct"'))
    refused = cli("batches", direct, "--cancel", "all")
    assert refused.status == 2
    assert "declare judges.judge with provider 'openai', model 'gpt-x' and 'mode: batch'" in refused.err
    known_as(store, None)
    assert "could not be cancelled: the server did not confirm it" in cli("batches", path, "--cancel", "all").err
    known_as(store, "batch_1")
    server.batches.made["batch_1"].ended = True
    late = cli("batches", path, "--cancel", "all")
    assert late.status == 3
    assert "batch batch_1 could not be cancelled: gpt-x: HTTP 409: the batch has ended" in late.err


def test_files_are_deleted_once_what_they_hold_is_in_the_store(tmp_path: Path, server: LLMServer) -> None:
    held_back: list[dict[str, bytes]] = []
    real = Store.save

    def save(self: Store, *given: Any, **options: Any) -> None:
        held_back.append(dict(server.batches.files))
        real(self, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "save", save)
        assert run(batched(tmp_path, server)).complete
    assert server.batches.uploaded == 2
    assert server.batches.files == {}
    assert any("output-batch_1" in files for files in held_back)
    assert all("output-batch_2" in files for files in held_back[-1:])


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_that_is_busy_has_taken_nothing_and_is_asked_again(
    tmp_path: Path, server: LLMServer, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges.batches, "_SEARCH_S", 60)
    server.batches.busy = 2
    assert run(labels_only(tmp_path, server, vendor=vendor)).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [8]
    assert server.batches.uploaded == (3 if vendor == "openai" else 0)
    assert server.batches.files == {}


def directly(folder: Path, path: Path) -> Path:
    direct = folder / "direct.yaml"
    direct.write_text(path.read_text().replace('"mode":"batch"', '"mode":"direct"'))
    return direct


@pytest.mark.parametrize("status", [0, 503, 429, 507])
def test_an_upload_that_fails_is_no_batch_and_nothing_has_to_be_paid(
    tmp_path: Path, server: LLMServer, cli: CLI, status: int
) -> None:
    server.batches.uploads = [status] * 99
    path = as_yaml(tmp_path, server, max_retry_s=0.3)
    failed = cli("run", path)
    assert failed.status == 3
    assert "no batch was submitted, so there is nothing to pay" in failed.err
    assert "goes on" not in failed.err
    assert (server.batches.made, json.loads(cli("batches", path, "--format", "json").out)) == ({}, [])
    server.batches.uploads = []
    assert cli("run", directly(tmp_path, path)).status == 0


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_that_was_never_reached_has_no_batch(tmp_path: Path, vendor: str, cli: CLI) -> None:
    with LLMServer() as server:
        path = as_yaml(tmp_path, server, vendor, max_retry_s=0.3)
    failed = cli("run", path)
    assert failed.status == 3
    assert "no batch was submitted" in failed.err
    assert cli("batches", path).out == "0 under way\n"
    with LLMServer(port=server.port) as back:
        assert cli("run", path).status == 0
        assert paid_once(back)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("ending", ["lost", "lost after it came there", "an error of the server"])
def test_of_a_hand_in_without_an_answer_it_is_said_that_nobody_knows(
    tmp_path: Path, cli: CLI, vendor: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges.batches, "_SEARCH_S", 60)
    with LLMServer() as server:
        path = as_yaml(tmp_path, server, vendor, max_retry_s=1)
        server.batches.answer_lost = 99 * (ending == "lost after it came there")
        server.batches.deaf, server.batches.fails = 99 * (ending == "lost"), 99 * (ending == "an error of the server")
        server.batches.unlisted = 99
        failed = cli("run", path)
        assert failed.status == 3
        assert "whether it has the 8 requests is not known; the next run looks for them" in failed.err
        assert "it is not known whether the server has 1 batch of 8 requests" in failed.err
        assert "goes on" not in failed.err
        refused = cli("run", directly(tmp_path, path))
        assert refused.status == 2
        assert "the server may have a batch of 8 of its requests" in refused.err
        shown = cli("batches", path).out
        assert "not answered" in shown
        assert "metadata" in shown
        assert len(server.batches.made) == (ending == "lost after it came there")
        monkeypatch.setattr(judges.batches, "_SEARCH_S", 0.5)
        server.batches.answer_lost = server.batches.deaf = server.batches.fails = server.batches.unlisted = 0
        assert cli("run", path).status == 0
        assert paid_once(server)
        assert [len(made.requests) for made in server.batches.made.values()] == [8, 18]


def test_a_batch_that_the_server_names_by_a_key_is_not_handed_in_again(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.batches.named = "sk-proj-" + "a1B2c3D4e5F6" * 3
    monkeypatch.setenv("OPENAI_API_KEY", server.batches.named)
    config = labels_only(tmp_path, server)
    for _ in range(2):
        assert "the server's id of the batch contains a key" in run(config).stopped[0]
        assert [len(made.requests) for made in server.batches.made.values()] == [8]
        assert under_way(config) == [8]


def test_a_batch_whose_requests_another_run_has_put_elsewhere_is_not_handed_in(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may sleep between the moment that it notes a batch and the one that it hands it in."""
    noted: list[str] = []
    place = StoredBook.place

    def place_and_sleep(book: StoredBook, batch: Batch, lines: dict[str, str]) -> dict[str, Batch]:
        placed = place(book, batch, lines)
        noted.append(batch.marker)
        if len(noted) == 1:
            book.drop(batch.marker)  # as the other run does once it has looked for it in vain
        return placed

    monkeypatch.setattr(StoredBook, "place", place_and_sleep)
    assert run(labels_only(tmp_path, server)).complete
    (made,) = server.batches.made.values()
    assert made.metadata == {"ragleague": noted[1]}
    assert server.batches.uploaded == 1


@pytest.mark.parametrize(
    ("vendor", "mode", "length"),
    [
        *((vendor, mode, 2**20 + 1) for vendor in VENDORS for mode in ("batch", "direct")),
        ("openai", "batch", 2**25),
        ("anthropic", "direct", 2**25),
    ],
)
def test_a_reply_beyond_all_bounds_is_paid_once(
    tmp_path: Path, server: LLMServer, vendor: str, mode: str, length: int, cli: CLI
) -> None:
    server.script = lambda call: Reply("x" * length) if b"as x tells it" in call.content else steady_judge(call)
    config = labels_only(tmp_path, server, vendor=vendor, mode=mode)
    first, again = run(config), run(config)
    assert (first.stages[Task.RELEVANCE].judged, first.stages[Task.RELEVANCE].failed) == (6, 2)
    assert again.stages[Task.RELEVANCE].calls == 0
    assert "--retry-failed" in again.next_step()
    failed = [result for result in results(config).values() if isinstance(result, JudgeFailure)]
    assert [failure.cause for failure in failed] == ["too_long"] * 2
    assert under_way(config) == []
    assert len(server.calls) == 8, "with those of batches"
