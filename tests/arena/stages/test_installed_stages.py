"""A stage of another distribution is found by its entry point, and needs no file of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_docs import ROOT, assert_occur_in_order, blocks, offline_environment, shown

PAGE = ROOT / "docs/own-stage.md"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    for block in blocks(PAGE):
        if block.file is not None:
            folder = site if block.file in ("tone_stage.py", "tone.yaml") else tmp_path
            (folder / block.file).write_text(block.text, encoding="utf-8")
    install(site, (tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    return tmp_path


def install(site: Path, pyproject: str) -> None:
    project = tomllib.loads(pyproject)["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items()) for group, e in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def ragleague(folder: Path, *arguments: str, installed: bool = True) -> tuple[int, str]:
    paths = [*([str(folder / "site")] if installed else []), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "ragleague", *arguments],
        cwd=folder,
        env=offline_environment(folder) | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_page_on_an_own_stage_does_what_it_shows(page: Path) -> None:
    entries = [entry for block in blocks(PAGE) if block.language == "text" for entry in shown(block.text)]
    assert entries
    for entry in entries:
        status, output = ragleague(page, *entry.command.split()[1:])
        assert status == entry.status, f"$ {entry.command}\n{output}"
        assert_occur_in_order(entry, output)


def test_a_store_judged_by_a_stage_is_read_without_its_configuration_and_only_where_it_is_installed(page: Path) -> None:
    assert ragleague(page, "run", "tournament.yaml")[0] == 0
    for _ in range(2):  # computed, then from the cache
        status, output = ragleague(page, "leaderboard", "polite.db", "--format", "json")
        assert status == 0, output
        assert json.loads(output)["tone"]["agents"]["kind"]["tone"] == 2.0
    for arguments in (["leaderboard", "polite.db"], ["report", "polite.db"], ["calibrate", "polite.db"]):
        status, output = ragleague(page, *arguments, installed=False)
        assert (status, "Traceback" in output) == (2, False), output
        assert (
            "section 'tone' was judged by a stage of the package tone-stage 1.0, which is not installed; install it"
            in output
        )
    assert ragleague(page, "failures", "polite.db", installed=False) == (0, "0 failed\n")
    status, output = ragleague(page, "run", "tournament.yaml", installed=False)
    assert (status, "tournament.yaml:6: unknown key 'tone'" in output) == (2, True)


def test_a_stage_may_have_a_board_and_results_of_its_own(page: Path) -> None:
    module = page / "site" / "tone_stage.py"
    source = module.read_text(encoding="utf-8")
    (page / "site" / "tone_board.py").write_text(
        "from tone_stage import results as tone\n"
        "from ragleague.stages import ScoreBoard, StageResults\n\n\n"
        "class ToneResults(StageResults, frozen=True, eq=False, kw_only=True):\n    rude: int\n\n\n"
        "class ToneBoard(ScoreBoard, frozen=True, eq=False, kw_only=True):\n    rude: int\n\n"
        "    def json(self):\n        return {'rude': self.rude}\n\n\n"
        "def results(store, tournament):\n"
        "    scores = tone(store, tournament).scores\n"
        "    return ToneResults(scores=scores, rude=int((scores[0].values == 0).sum()))\n\n\n"
        "def board(results):\n    return ToneBoard('tone', results.scores, 'Tone of answers', rude=results.rude)\n",
        encoding="utf-8",
    )
    module.write_text(source.replace("results=__name__", "results='tone_board', board='tone_board'"), encoding="utf-8")
    assert ragleague(page, "run", "tournament.yaml")[0] == 0
    for _ in range(2):  # computed, then from the cache
        status, output = ragleague(page, "leaderboard", "polite.db", "--format", "json")
        assert (status, json.loads(output)["tone"]) == (0, {"rude": 2}), output
    assert "Tone of answers" in ragleague(page, "leaderboard", "polite.db", "--details")[1]


def test_people_are_held_against_the_judge_of_a_stage_that_brings_a_kind(page: Path) -> None:
    module = page / "site" / "tone_stage.py"
    source = module.read_text(encoding="utf-8").replace('scores={"tone"', 'by_people=True, scores={"tone"')
    module.write_text(source + (page / "tone_kind.py").read_text(encoding="utf-8"), encoding="utf-8")
    rows = ("q1,curt,0", "q1,kind,2", "q2,curt,1", "q2,kind,2")
    table = "qid,agent,tone,annotator\n" + "".join(f"{row},ann\n" for row in rows)
    (page / "people.csv").write_text(table, encoding="utf-8")
    assert ragleague(page, "run", "tournament.yaml")[0] == 0
    status, output = ragleague(page, "calibrate", "polite.db", "--people", "people.csv")
    assert (status, "What is taken for what: words, tone" in output) == (0, True), output
    status, output = ragleague(page, "import", "votes", "people.csv", "--store", "polite.db")
    assert (status, output) == (
        0,
        "read: people.csv: qid, agent, tone, annotator; 4 labels by 1 rater\n4 labels by ann, 4 of them new\n",
    )
    status, output = ragleague(page, "export", "votes", "polite.db", "back.csv", "--kind", "tone")
    assert (status, output) == (0, "wrote back.csv: 4 labels by ann\n")
    assert (page / "back.csv").read_text(encoding="utf-8") == table
    status, output = ragleague(page, "export", "votes", "polite.db", "t.csv", "--kind", "tones")
    assert (status, output) == (2, "error: --kind tones: no such kind of labels; did you mean 'tone'?\n")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("STAGE = ListedStage(", "STAGE = tuple("), "cannot be loaded (TypeError"),
        (("STAGE = ", "OTHER = "), "cannot be loaded (AttributeError"),
        (("from pathlib", "import nowhere\nfrom pathlib"), "cannot be loaded (ModuleNotFoundError: No module named"),
        (("STAGE = ListedStage(", "STAGE = dict(a=1) or ListedStage("), "tone_stage:STAGE is not a ListedStage"),
        (('    "tone", (TONE,)', '    "tones", (TONE,)'), "tone_stage:STAGE has the key 'tones'"),
        (('Task("tone")', 'Task("support")'), "gives the task 'support', which another stage gives"),
        (('scores={"tone"', 'scores={"support_recall"'), "has the score 'support_recall', which another stage has"),
        (("results=__name__, ", ""), "needs 'words' and 'results'"),
    ],
)
def test_an_entry_point_that_is_no_stage_is_refused_in_one_line(
    page: Path, change: tuple[str, str], fault: str
) -> None:
    module = page / "site" / "tone_stage.py"
    module.write_text(module.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    status, output = ragleague(page, "run", "tournament.yaml")
    assert (status, output.count("\n")) == (2, 1), output
    assert output.startswith("error: tournament.yaml:6: tone: the stage in the package tone-stage 1.0 cannot be ")
    assert fault in output


def test_a_section_that_two_distributions_claim_is_refused(page: Path) -> None:
    install(
        page / "site", '[project]\nname="other"\nversion="2"\n[project.entry-points."ragleague.stages"]\ntone="x:Y"'
    )
    status, output = ragleague(page, "plan", "tournament.yaml")
    assert (status, "both have a stage of this name; uninstall one" in output) == (2, True), output


def test_a_key_close_to_an_installed_stage_is_corrected(page: Path) -> None:
    config = page / "tournament.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("tone:", "tones:"), encoding="utf-8")
    status, output = ragleague(page, "plan", "tournament.yaml")
    assert (status, "unknown key 'tones'; did you mean 'tone'?" in output) == (2, True), output
