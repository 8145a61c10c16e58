"""Pages that were started for a configuration open its tournament, and say what the store holds in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import ragleague as rl
from tests.support.pages import sent, shown
from tests.ui.test_ui_pages import APP
from ui.data import LOCATION_VARIABLE
from ui.editing import CONFIG_VARIABLE

CONFIG = """
name: {name}
store: shared.db
data: {{answers: [{agents}]}}
judges: {{words: {{provider: lexical}}}}
pairwise: {{judges: words}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for agent in "pqrs":
        (tmp_path / f"{agent}.csv").write_text(f"question,answer\nWhy?,{agent} says so\n")
    for name, agents in {"alpha": "p.csv, q.csv", "beta": "r.csv, s.csv"}.items():
        (tmp_path / f"{name}.yaml").write_text(CONFIG.format(name=name, agents=agents))
        rl.run(tmp_path / f"{name}.yaml", progress=False)
    monkeypatch.setenv(LOCATION_VARIABLE, str(tmp_path / "shared.db"))
    return tmp_path


def opened(monkeypatch: pytest.MonkeyPatch, config: Path, **address: str) -> AppTest:
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    run = AppTest.from_file(str(APP))
    for key, value in address.items():
        run.query_params[key] = value
    run.run(timeout=30)
    assert not run.exception
    return run


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_they_open_its_tournament(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = opened(monkeypatch, folder / f"{name}.yaml")
    assert run.query_params["tournament"] in (name, [name])
    assert ".yaml" not in shown(run)
    other = opened(monkeypatch, folder / f"{name}.yaml", tournament="beta")
    assert other.query_params["tournament"] in ("beta", ["beta"]), "whoever asks for another gets it"


def test_they_say_what_is_stored_where_it_has_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    third = folder / "third.yaml"
    third.write_text(CONFIG.format(name="gamma", agents="p.csv, s.csv"))
    run = opened(monkeypatch, third)
    assert "This tournament has not run yet. Run it, or choose another above." in shown(run)
    assert "\ngamma\n" in shown(run)
    assert 'href="workbench?tournament=gamma&amp;view=runs"' in sent(run)
    third.write_text(CONFIG.format(name="alpha", agents="p.csv, s.csv"))
    run = opened(monkeypatch, third)
    assert "third.yaml: another file ran the tournament 'alpha' in the store (agents p and q" in shown(run)
