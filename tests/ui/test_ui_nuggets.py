"""The game page says which nuggets tell two answers apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from judges.types import Task
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.nugget_judge import labels, nugget_judge, nugget_tournament, task_of, user_of
from tests.support.pages import shown
from tests.support.tournaments import run, write_data
from ui.data import LOCATION_VARIABLE


def draw() -> None:
    from ui import data
    from ui.views.game import show_game

    version, names = data.tournaments()
    source = data.Source(data.location(), version, names[-1])
    show_game(source, data.games(source).key(0))


def judge(call: Call) -> Reply:
    if task_of(call) == "assignment" and "Agent y" in user_of(call):
        return labels(["support", "not_support", "partial_support", "not_support"])
    return nugget_judge(call)


@pytest.mark.parametrize("assigned", [True, False])
def test_a_game_lists_the_nuggets_of_its_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assigned: bool) -> None:
    write_data(tmp_path, ["q1"])
    with LLMServer(judge) as server:
        section = {"judges": ["judge"], "documents": {"threshold": 1}}
        config = nugget_tournament(tmp_path, server.openai_url, pairwise=section)
        run(config, only=None if assigned else [Task.RELEVANCE, Task.PAIRWISE])
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "store.db"))
    page = AppTest.from_function(draw).run(timeout=20)
    assert not page.exception
    assert "Nuggets" in [heading.value for heading in page.subheader]
    captions = "\n".join(caption.value for caption in page.caption)
    words = shown(page)
    if assigned:
        assert "4 in all. The two answers differ on 1." in captions
        assert "fact of y" in words
        assert "x: no support · y: partial support" in words
    else:
        assert "No nuggets for this query: no document with a label that counts" not in captions
        assert "No nuggets for this query: its nuggets are not made yet." in captions
