"""Latency and cost on the overview: figures, what is missing, and the fronts in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from arena import tournament
from arena.agents.run import run_agents
from arena.config import load_config
from tests.support.agents import Silent, answering, http_agent, write_config
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.pages import shown
from tests.support.tournaments import Quiet
from ui.data import LOCATION_VARIABLE

APP = Path(__file__).parents[2] / "ui" / "app.py"


def overview() -> AppTest:
    run = AppTest.from_file(str(APP)).run(timeout=30)
    assert not run.exception
    return run


def test_the_overview_has_what_answers_took_and_who_owes_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(call: Call) -> Reply:
        faults = {"q3": Reply(status=500)} if call.path == "/quick" else {}
        reply = answering("What is" if call.path == "/slow" else "So", faults)(call)
        return Reply(status=reply.status, body=reply.body, delay_s=0.15 if call.path == "/slow" else 0)

    with LLMServer(script) as server:
        agents = {name: http_agent(f"http://127.0.0.1:{server.port}/{name}") for name in ("slow", "quick")}
        config = load_config(write_config(tmp_path, agents))
        assert not run_agents(config, Silent()).complete
        assert tournament.run(config, Quiet()).complete
    monkeypatch.setenv(LOCATION_VARIABLE, config.store)
    page = overview()
    assert "answers are missing, 1 in all, of 1 agent" in shown(page).lower()
    (table,) = (frame.value for frame in page.dataframe if "Answered" in frame.value)
    rows = {row["Agent"]: row for _, row in table.iterrows()}
    assert (rows["quick"]["Answered"], rows["quick"]["Why not answered"]) == (7, "server_error 1")
    assert rows["slow"]["Latency, median"] >= 0.15 > rows["quick"]["Latency, median"]
    assert rows["slow"]["Cost of a query"] == 0.002
    words = shown(page)
    assert "Rating against latency: " in words
    assert "Rating against cost" not in words, "an answer of either costs the same"


def test_answers_without_figures_leave_the_part_out(played_demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCATION_VARIABLE, str(played_demo / "rag-handbook.db"))
    assert "Latency and cost" not in [heading.value for heading in overview().subheader]
