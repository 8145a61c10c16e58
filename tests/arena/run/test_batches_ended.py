"""Batches that end otherwise than they should: cancelled, expired, lost on the way; and what is left on the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.store import Store
from judges.batches import provider
from judges.types import Task
from tests.conftest import CLI
from tests.support.batched import VENDORS, as_yaml, batched, hurry, labels_only, paid_once
from tests.support.llm_server import LLMServer
from tests.support.tournaments import run


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def known_as(location: str, remote_id: str | None) -> None:
    """Let the store know its batch by this name of the server's."""
    store = Store.open(location)
    named = "NULL" if remote_id is None else f"'{remote_id}'"
    with store._write() as connection:
        connection.exec_driver_sql(f"UPDATE batch SET remote_id = {named}")
    store.close()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_whose_making_was_not_answered_is_found_again_though_lists_lag(
    tmp_path: Path, server: LLMServer, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_SEARCH_S", 60)
    server.batches.answer_lost, server.batches.lag = 1, 3
    assert run(batched(tmp_path, server, vendor)).complete
    assert server.batches.lag == 0
    assert [len(made.requests) for made in server.batches.made.values()] == [8, 18]
    assert paid_once(server)


def test_a_later_run_looks_for_a_batch_as_long_as_the_one_that_handed_it_in(
    tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_SEARCH_S", 60)
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
    cancelled = cli("failures", path, "--batches", "--cancel", made.remote_id)
    assert cancelled.status == 0
    assert f"batch {made.remote_id} is being cancelled" in cancelled.err
    assert "1 under way" in cancelled.out

    said = cli("run", path)
    line = f"judge 'judge' stopped: batch {made.remote_id} was cancelled: 3 of 8 replies are kept; "
    assert line + "'ragleague run CONFIG --retry-failed' asks for the rest again" in said.err
    assert said.status == 3
    server.batches.held = False
    assert (
        "relevance: 0 judged, 3 known, 5 failed, 0 left of 8; 0 calls" in cli("run", path, "--stage", "relevance").err
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
    assert "name the tournament's YAML file" in cli("failures", store, "--batches", "--cancel", "all").err
    direct = tmp_path / "direct.yaml"
    direct.write_text(path.read_text().replace('"mode":"batch"', '"mode":"direct"'))
    refused = cli("failures", direct, "--batches", "--cancel", "all")
    assert refused.status == 2
    assert "judges.judge must be declared with provider 'openai', model 'gpt-x' and 'mode: batch'" in refused.err
    known_as(store, None)
    assert (
        "could not be cancelled: its hand-in was not answered"
        in cli("failures", path, "--batches", "--cancel", "all").err
    )
    known_as(store, "batch_1")
    server.batches.made["batch_1"].ended = True
    late = cli("failures", path, "--batches", "--cancel", "all")
    assert late.status == 3
    assert "batch batch_1 could not be cancelled: gpt-x: HTTP 409: the batch has ended" in late.err


def test_files_are_deleted_once_what_they_hold_is_in_the_store(tmp_path: Path, server: LLMServer) -> None:
    """Not before: a run that is killed in between finds its replies there."""
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
    monkeypatch.setattr(provider, "_SEARCH_S", 60)
    server.batches.busy = 2
    assert run(labels_only(tmp_path, server, vendor=vendor)).complete
    assert [len(made.requests) for made in server.batches.made.values()] == [8]
    assert server.batches.uploaded == (3 if vendor == "openai" else 0)
    assert server.batches.files == {}
