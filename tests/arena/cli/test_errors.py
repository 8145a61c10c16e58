"""Wrong input, streams that are full or closed, installations that lack a part: a status and a line say it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from arena.cli.doctor import examine
from arena.demo import copy_demo
from arena.store import Store
from tests.conftest import ROOT
from tests.support.children import command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy_demo(tmp_path)
    return tmp_path


def refused(cli: Any, *arguments: object) -> str:
    ended = cli(*arguments)
    assert ended.status == 2, ended
    assert ended.out == ""
    (line,) = ended.err.splitlines()
    assert line.startswith("error: ")
    return str(line)


def replaced(file: Path, old: str, new: str) -> Path:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def test_an_unknown_tournament_is_answered_with_those_there_are(cli: Any, played_demo: Path) -> None:
    for name, *further in (["leaderboard"], ["failures"], ["votes"]):
        line = refused(cli, name, played_demo / "rag-handbook.db", *further, "--tournament", "other")
        assert "no tournament named 'other'; there are rag-handbook" in line


def test_several_tournaments_want_one_named(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n")
    store = tmp_path / "s.db"
    for name in ("one", "two"):
        imported = cli("import", "verdicts", tmp_path / "v.csv", "--store", store, "--tournament", name)
        assert imported.out.endswith(f"ragleague leaderboard {store} --tournament {name}\n")
    assert "several tournaments; name one with --tournament (in Python: tournament=): one, two" in refused(
        cli, "leaderboard", store
    )
    assert cli("failures", store, "--tournament", "two").out == "0 failed\n"
    shown = " ".join(cli("leaderboard", store, "--tournament", "two").out.split())
    assert f"ragleague leaderboard {store} --tournament two --details" in shown


def test_an_import_does_not_take_the_place_of_a_run(cli: Any, played_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n")
    where = ["--store", played_demo / "rag-handbook.db", "--tournament", "rag-handbook"]
    assert "give the imported one another name" in refused(cli, "import", "verdicts", tmp_path / "v.csv", *where)


def test_turns_of_one_query_are_never_folded_in_silence(cli: Any, tmp_path: Path) -> None:
    rows = [f"q{query},{turn},a,b,{'AB'[turn % 2]}" for query in range(12) for turn in (1, 2)]
    (tmp_path / "votes.csv").write_text("\n".join(["qid,turn,agent_a,agent_b,verdict", *rows]))
    ended = cli("import", "verdicts", tmp_path / "votes.csv", "--store", tmp_path / "s.db")
    assert ended.status == 2
    assert ended.err.endswith("rows of one query differ in column 'turn'; add --item turn to tell them apart\n")
    ended = cli("import", "verdicts", tmp_path / "votes.csv", "--store", tmp_path / "s.db", "--item", "turn")
    assert "not used" not in ended.err
    assert "24 verdicts imported" in ended.out
    with closing(Store.open(str(tmp_path / "s.db"))) as store:
        queries = store.dataset("votes").queries
    assert {(name, query.cluster) for name, query in queries.items()} >= {("q0/1", "q0"), ("q0/2", "q0")}
    assert len(queries) == 24


def test_an_import_says_what_it_takes_the_place_of(cli: Any, tmp_path: Path) -> None:
    table, store = tmp_path / "v.csv", tmp_path / "s.db"
    table.write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,x,y,B\n")
    for _ in range(2):
        assert cli("import", "verdicts", table, "--store", store).out.startswith("2 verdicts imported as 'v'\nnext: ")
    table.write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,x,y,TIE\n")
    assert (
        "\nno longer shown: 1 verdict of the earlier import as 'v'; "
        in cli("import", "verdicts", table, "--store", store).out
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "k=nan"], "--set: k: "),
        (["--set", "initial=inf"], "--set: initial: "),
    ],
)
def test_options_of_rate_that_make_no_sense_are_refused(
    cli: Any, tmp_path: Path, options: list[str], said: str
) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,y,x,A\n")
    assert said in refused(cli, "rate", tmp_path / "v.csv", *options)


@pytest.mark.parametrize(
    "option",
    [
        ["--set", "position=true"],
        ["--covariate", "words"],
        ["--cluster", "topic"],
        ["--cluster", "none"],
        ["--by", "judge"],
        ["--as-games"],
        ["--reconcile"],
        ["--skip-faulty"],
    ],
    ids=" ".join,
)
def test_options_of_tables_are_refused_with_a_matrix(cli: Any, tmp_path: Path, option: list[str]) -> None:
    (tmp_path / "m.csv").write_text("agent,x,y\nx,,60\ny,40,\n")
    line = refused(cli, "rate", tmp_path / "m.csv", "--queries", "10", *option)
    assert f"{option[0]}" in line
    assert "only for a table of verdicts" in line


def test_an_anchor_that_is_no_agent_is_refused_with_those_there_are(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,x,y\nx,,60\ny,40,\n")
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,y,x,A\n")
    for name, *further in (["m.csv", "--queries", "10"], ["v.csv"]):
        line = refused(cli, "rate", tmp_path / name, *further, "--set", "anchor=z")
        assert "the anchor 'z' has no games; choose one of x, y" in line


def test_a_table_with_mapped_columns_is_no_matrix(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("model,rival,winner\nx,y,A\ny,x,A\n")
    columns = ["--column", "agent_a=model", "--column", "agent_b=rival"]
    assert cli("rate", tmp_path / "v.csv", *columns).status == 0


def test_a_matrix_wants_its_number_of_queries_and_fractions_have_no_elo(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,x,y\nx,,33.3\ny,50,\n")
    assert "--queries" in refused(cli, "rate", tmp_path / "m.csv")
    assert "no Elo rating" in refused(cli, "rate", tmp_path / "m.csv", "--queries", "7", "--method", "elo")
    rated = cli("rate", tmp_path / "m.csv", "--queries", "7")
    assert rated.status == 0
    assert "There is no Elo rating" in rated.out


@pytest.mark.parametrize(
    ("what", "out", "said"),
    [
        ("verdicts", "no/such/out.csv", "cannot be written"),
        ("verdicts", "out.xlsx", "not a table"),
        ("labels", "out.qrels", "or use 'ragleague export qrels'"),
        ("data", "queries.csv", "cannot be made a folder"),
        ("data", "queries.csv/inside", "cannot be made a folder"),
    ],
)
def test_an_export_that_cannot_be_written_is_named(
    cli: Any, played_demo: Path, folder: Path, what: str, out: str, said: str
) -> None:
    line = refused(cli, "export", what, played_demo / "tournament.yaml", folder / out)
    assert str(folder / out) in line
    assert said in line


def test_doctor_says_what_a_configuration_lacks(cli: Any, folder: Path, tmp_path: Path) -> None:
    fine = cli("doctor", folder / "tournament.yaml")
    assert fine.status == 0
    assert "ok       config data: 26 queries, 7 agents, 182 answers, 89 documents" in fine.out
    config = replaced(folder / "tournament.yaml", "prompt: reasoner ", "prompt: resoner ")
    broken = cli("doctor", config)
    assert broken.status == 2
    assert "retrieval.prompt: 'resoner' is neither a packaged prompt" in broken.out
    assert cli("doctor").status == 0


def test_what_a_tournament_is_made_of_is_not_written_over(cli: Any, folder: Path) -> None:
    config = folder / "tournament.yaml"
    before = config.read_bytes()
    line = refused(cli, "run", config, "--log-json", config)
    assert line == f"error: {config}: is not a log in JSON lines, and appending would damage it; name a new file"
    assert config.read_bytes() == before
    assert cli("run", config, "--log-json", folder / "log.jsonl").status == 0
    assert cli("run", config, "--log-json", folder / "log.jsonl").status == 0
    store = next(folder.glob("*.db"))
    said = "this is a store or another database; name another file"
    assert refused(cli, "export", "qrels", config, store, "--force").endswith(said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
def test_a_log_that_cannot_be_written_ends_the_run_with_one_line(cli: Any, folder: Path) -> None:
    line = refused(cli, "run", folder / "tournament.yaml", "--log-json", "/dev/full")
    assert line == "error: /dev/full: cannot be written: No space left on device; make room, or name another disk"


EACH = """
import os, sys
from arena.cli.main import main
for words in sys.argv[2:]:
    if not (child := os.fork()):
        sys.argv = ["ragleague", *words.split("|")]
        main()
    print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""
"""Forks a process that has imported the command line once, for each command."""


def each(stdout: int, *commands: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", EACH, "-", *commands],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    return "".join(line for line in done.stderr.splitlines(True) if " judged, " not in line)


def test_a_full_disk_behind_standard_output_is_one_line_and_a_failure(played_demo: Path) -> None:
    demo = played_demo / "tournament.yaml"
    with Path("/dev/full").open("wb") as full:
        said = each(full.fileno(), "--help", f"leaderboard|{demo}")
    assert said == "error: standard output: No space left on device\nstatus 1\n" * 2


def test_a_reader_who_has_left_ends_a_command_as_it_ends_others(played_demo: Path) -> None:
    demo = played_demo / "tournament.yaml"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        said = each(writer, "--help", f"leaderboard|{demo}|--format|csv")
    finally:
        os.close(writer)
    assert said == "status 141\n" * 2


@pytest.mark.parametrize(
    ("words", "closed", "status", "out", "err"),
    [("--help", (1,), 1, "", "error: standard output: closed\n"), ("demo", (0, 2), 0, "Nothing to conclude yet: ", "")],
)
def test_a_command_does_its_work_though_streams_are_closed(
    tmp_path: Path, words: str, closed: tuple[int, ...], status: int, out: str, err: str
) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        command(words),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=close,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, err)
    assert out in done.stdout
    for store in tmp_path.glob("demo/*.db"):
        assert store.read_bytes().startswith(b"SQLite format 3"), "nothing said went into it"


def test_every_extra_is_looked_at() -> None:
    named = {name.removeprefix("extra ") for name, _, _ in examine() if name.startswith("extra ")}
    assert named == {*(metadata.metadata("ragleague").get_all("Provides-Extra") or ())}


def test_files_of_another_distribution_in_our_packages_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [(fine, detail) for name, fine, detail in examine() if name == "packages"] == [
        (True, "arena, judges, retrieval_eval and ui are ours alone")
    ]
    other = tmp_path / "courtroom-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: courtroom\nVersion: 1.0\n")
    (other / "top_level.txt").write_text("judges\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [(fine, detail) for name, fine, detail in examine() if name == "packages"] == [
        (False, "other distributions have files there too: judges (courtroom); uninstall one of both")
    ]
