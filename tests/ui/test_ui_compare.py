"""Compare: the figure, and the part of the page that the address names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from tests.support.pages import page, sent, start_on, table, unfolded
from tests.support.sample_store import AGENTS, write_store
from tests.support.tournaments import configured, run, write_data
from ui.data import LOCATION_VARIABLE


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = write_store(tmp_path / "s.db", queries=20)
    monkeypatch.setenv(LOCATION_VARIABLE, str(path))
    yield path
    st.cache_resource.clear()


def test_the_figure_leads_to_agents_and_games_and_each_part_is_drawn_when_it_is_chosen(store: Path) -> None:
    run = page("compare")
    drawn = sent(run)
    assert "with the games" in drawn
    for address in ("agent=hybrid", "view=games&amp;agent=hybrid&amp;opponent=dense"):
        assert f'href="queries?tournament=sample&amp;{address}"' in drawn
    assert "Kendall" in drawn
    assert len(run.get("download_button")) == 2
    assert sent(page("compare", part="Two scores")).count("<svg") == 1
    assert table(unfolded(page("compare"), "tables"), "Rating", "Mean grade", "nDCG@10")["Agent"].tolist() == list(
        AGENTS
    )


def test_a_choice_of_agents_stands_in_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_store(tmp_path / "many.db", queries=20, agents=[f"agent-{at}" for at in range(9)])
    monkeypatch.setenv(LOCATION_VARIABLE, str(path))
    ranks, chosen = (sent(page("compare", **given)) for given in ({}, {"only": "agent-4"}))
    heads = [drawn.count('<th scope="row" title="agent-') for drawn in (ranks, chosen)]
    assert heads == [18, 2], "each agent has a row among the scores and one in the matrix"
    bands = [drawn.count('class="bar band"') for drawn in (ranks, chosen)]
    assert bands == [19, 3], "one for each score and agent, and one in the legend"
    st.cache_resource.clear()


def test_the_tables_say_what_support_rests_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path, answers={("q1", "x"): "About q1, as all tells it [1]. It is new [8].", ("q1", "y"): "No."})
    config = configured(tmp_path, retrieval=None, criteria=None, support={"judge": "judge"})
    run(config)
    start_on(monkeypatch, config)
    found = table(unfolded(page("compare"), "tables"), "Support", "Invented", "Not judged")
    assert found.set_index("Agent")["Invented"].to_dict() == {"x": 1, "y": 0, "z": 0}
    st.cache_resource.clear()
