"""Every part of every page on stores that lack results: what it says is so, and a button or a command leads on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.config.schema import Config, load_config
from arena.store import Store
from arena.store.runners import Runner
from arena.store.runs import Runs
from judges.types import Task
from tests.support.nugget_store import played_nugget_tournament
from tests.support.pages import page, sent, shown, start_on
from tests.support.sample_store import begin_judged
from ui.access import EVERYBODY_VARIABLE
from ui.app import PAGES

VIEWS = [view for one in PAGES for view in one.views]
LEADS = re.compile(r'href="((?:workbench|review|trust)\?[^"]*)"><p class="said button"')
WORDS: Mapping[str, Any] = {"pairwise": {"judges": "words"}, "criteria": {"judge": "words"}}
LACKS = re.compile(r"\byet\b|not imported|Here are none|No answer gets a score|has fewer|has no|plans no games")
"""How a page says that something is lacking, other than in a check."""


def killed(folder: Path, *kept: Task) -> Config:
    """A tournament whose run died when it had judged no more than these stages."""
    played = load_config(played_nugget_tournament(folder, **WORDS))
    with closing(Store.open(played.store)) as store:
        begin_judged(store, "half", lambda want: want.task in kept, "nuggets")
        Runs(store, "half").begin(replace(Runner(), pid=2**22 + 1), {})
    return played.model_copy(update={"name": "half"})


def played(folder: Path, **sections: Any) -> Config:
    return load_config(played_nugget_tournament(folder, **sections))


STORES: Mapping[str, Callable[[Path], Config]] = {
    "killed at once": killed,
    "killed half way": lambda folder: killed(folder, Task.CRITERIA),
    "only nuggets": played,
    "only criteria": lambda folder: played(folder, nuggets=None, criteria={"judge": "words"}),
    "only games": lambda folder: played(folder, nuggets=None, pairwise={"judges": "words"}),
    "a single agent": lambda folder: played(folder, agents=["x"]),
}


@pytest.fixture(scope="module", params=STORES)
def config(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Config:
    return STORES[request.param](tmp_path_factory.mktemp("dead"))


@pytest.mark.parametrize("role", ["editor", "viewer"])
@pytest.mark.parametrize("editable", [True, False])
def test_a_page_that_lacks_something_leads_on(
    config: Config, monkeypatch: pytest.MonkeyPatch, role: str, *, editable: bool
) -> None:
    start_on(monkeypatch, config, editable=editable)
    monkeypatch.setenv(EVERYBODY_VARIABLE, role)
    for view in VIEWS:
        run = page(view, annotator="ann")
        words, leads = shown(run), [*LEADS.findall(sent(run)), *(one.value for one in run.code)]
        assert words.strip(), view
        said = [one.value for one in run.info if LACKS.search(one.value)]
        if role == "viewer":
            assert not [lead for lead in leads if "workbench?" in lead or "--store" in lead], view
            assert str(Path(config.store).parent) not in words, view
        elif said:
            assert [lead for lead in leads if not lead.startswith("pairwise:")], (view, said)


def test_a_command_names_the_yaml_file_beside_the_store_and_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = killed(tmp_path)
    (tmp_path / "a broken.yaml").write_text("name: [")
    start_on(monkeypatch, config)
    file = tmp_path / "t.yaml"
    assert [one.value for one in page("compare").code] == ["ragleague run tournament.yaml"], "t.yaml has another name"
    file.write_text(file.read_text().replace("name: nuggets", "name: half"))
    assert [one.value for one in page("compare").code] == [f"ragleague run {file}"]
    assert page("people").code[-1].value == (
        f"ragleague import votes LABELS.csv --store {tmp_path}/store.db --tournament half"
    )


def test_what_is_not_judged_is_dated_by_no_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_on(monkeypatch, killed(tmp_path))
    assert "No verdicts yet" in sent(page("leaderboard"))
    assert "Judged " not in sent(page("leaderboard"))
