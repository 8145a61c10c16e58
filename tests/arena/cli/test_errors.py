"""Wrong input: exit status 2 and one line that says where and what."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from arena.demo import copy_demo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The demo's files, not played yet."""
    copy_demo(tmp_path)
    return tmp_path


def refused(cli: Any, *arguments: object) -> str:
    """The one line on standard error of a command that must refuse."""
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


@pytest.mark.parametrize(
    "command",
    [["run"], ["plan"], ["leaderboard"], ["failures"], ["export", "out.csv"], ["ui"]],
    ids=lambda words: words[0],
)
def test_a_missing_configuration_is_named(cli: Any, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "nowhere.yaml"
    assert f"{path}: cannot be read" in refused(cli, command[0], path, *command[1:])


def test_a_missing_store_says_what_makes_one(cli: Any, tmp_path: Path) -> None:
    assert "'ragleague run' makes one" in refused(cli, "leaderboard", tmp_path / "nowhere.db")


def test_a_folder_is_no_store(cli: Any, tmp_path: Path) -> None:
    assert "a folder; name the .yaml file or the store in it" in refused(cli, "leaderboard", tmp_path)


def test_an_unknown_key_is_answered_with_the_nearest_name(cli: Any, folder: Path) -> None:
    config = replaced(folder / "tournament.yaml", "both_orders: true", "both_order: true")
    line = refused(cli, "run", config)
    assert f"{config}:25: pairwise: unknown key 'both_order'; did you mean 'both_orders'?" in line


def test_a_judge_that_is_not_declared_is_named_with_the_nearest(cli: Any, folder: Path) -> None:
    config = replaced(folder / "tournament.yaml", "judges: [lexical]", "judges: [lexica]")
    line = refused(cli, "run", config)
    assert "judge 'lexica' is not declared under 'judges'; did you mean 'lexical'?" in line


def test_a_bad_table_is_named_with_line_and_value(cli: Any, folder: Path) -> None:
    with (folder / "answers.csv").open("a", encoding="utf-8") as answers:
        answers.write("q404,rag-bm25,to nothing\n")
    line = refused(cli, "run", folder / "tournament.yaml")
    assert "answers.csv:184: no query has this id; did you mean 'q04'?" in line
    assert not (folder / "rag-handbook.db").exists()


def test_a_missing_column_is_named(cli: Any, folder: Path) -> None:
    replaced(folder / "queries.csv", "qid,query", "qid,wording")
    assert "queries.csv:1: column 'query' is missing" in refused(cli, "plan", folder / "tournament.yaml")


def test_a_missing_key_is_named_before_anything_is_judged(cli: Any, folder: Path) -> None:
    config = replaced(folder / "tournament.yaml", "provider: lexical", "{provider: openai, model: gpt-4.1-mini}  #")
    replaced(config, "lexical:\n    {provider", "lexical: {provider")
    line = refused(cli, "run", config)
    assert "no key for model 'gpt-4.1-mini': set the environment variable OPENAI_API_KEY" in line
    assert not (folder / "rag-handbook.db").exists()


def test_a_key_in_the_file_is_refused_without_repeating_it(cli: Any, folder: Path) -> None:
    config = replaced(folder / "tournament.yaml", "provider: lexical", "provider: lexical\n    api_key: sk-secret-1")
    line = refused(cli, "run", config)
    assert "name an environment variable with 'api_key_env'" in line
    assert "sk-secret-1" not in line


def test_an_unknown_tournament_is_answered_with_those_there_are(cli: Any, played_demo: Path) -> None:
    for command in (["leaderboard"], ["failures"], ["export", "out.csv"]):
        line = refused(cli, command[0], played_demo / "rag-handbook.db", *command[1:], "--tournament", "other")
        assert "no tournament named 'other'; there are rag-handbook" in line


def test_a_file_that_is_no_store_is_named(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one" * 50)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE thing (name TEXT)")
    other.close()
    for name in ("text.db", "other.db"):
        for command in (["leaderboard"], ["failures"], ["export", "out.csv"]):
            assert f"{tmp_path / name}: not a" in refused(cli, command[0], tmp_path / name, *command[1:])


def test_several_tournaments_want_one_named(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n")
    store = tmp_path / "s.db"
    for name in ("one", "two"):
        imported = cli("import", tmp_path / "v.csv", "--store", store, "--tournament", name)
        assert imported.out.endswith(f"ragleague leaderboard {store} --tournament {name}\n")
    assert "several tournaments, name one: one, two" in refused(cli, "leaderboard", store)
    assert cli("failures", store, "--tournament", "two").out == "0 failed\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,y,x,perhaps\n", ":3: 'verdict' must be A, B, TIE"),
        ("qid,agent_a,agent_b,verdict\n1,x,x,A\n", ":2: an agent plays against itself"),
        ("qid,agent_a,agent_b\n1,x,y\n", ": column 'verdict' is missing"),
        ("qid,agent_a,agent_b,verdict\n1,x,A\n", ":2: the record has 3 fields, the header 4"),
        ("qid,agent_a,agent_b,verdict\n", ": the table has no rows"),
        ("", ": the file is empty"),
    ],
    ids=["verdict", "self", "column", "short", "header", "empty"],
)
@pytest.mark.parametrize("command", ["rate", "import"])
def test_a_bad_table_of_verdicts_is_named(cli: Any, tmp_path: Path, command: str, text: str, said: str) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text)
    more = ["--store", tmp_path / "s.db"] if command == "import" else []
    assert f"{file}{said}" in refused(cli, command, file, *more)
    assert not (tmp_path / "s.db").exists()


def test_an_import_does_not_take_the_place_of_a_run(cli: Any, played_demo: Path, tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n")
    where = ["--store", played_demo / "rag-handbook.db", "--tournament", "rag-handbook"]
    assert "choose another name" in refused(cli, "import", tmp_path / "v.csv", *where)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "k=nan"], "--set: k: "),
        (["--set", "initial=inf"], "--set: initial: "),
        (["--set", "scale=0"], "scale must be positive"),
        (["--set", "kay=3"], "--set kay: there is none"),
        (["--set", "ties=some"], "--set: ties: "),
        (["--queries", "5"], "--queries goes with a matrix"),
        (["--by", "topic"], "--by: only 'judge', not 'topic'"),
        (["--set", "position=true", "--reconcile"], "reconciled games have no order"),
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
    assert "only with a table of verdicts" in line


def test_an_anchor_that_is_no_agent_is_refused_with_those_there_are(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("agent,x,y\nx,,60\ny,40,\n")
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict\n1,x,y,A\n2,y,x,A\n")
    for command in (["m.csv", "--queries", "10"], ["v.csv"]):
        line = refused(cli, "rate", tmp_path / command[0], *command[1:], "--set", "anchor=z")
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
        ("labels", "out.qrels", "'--what qrels' writes qrels"),
        ("data", "queries.csv", "cannot be made a folder"),
        ("data", "queries.csv/inside", "cannot be made a folder"),
    ],
)
def test_an_export_that_cannot_be_written_is_named(
    cli: Any, played_demo: Path, folder: Path, what: str, out: str, said: str
) -> None:
    line = refused(cli, "export", played_demo / "tournament.yaml", folder / out, "--what", what)
    assert str(folder / out) in line
    assert said in line


@pytest.mark.parametrize(
    "arguments", [["run", "--nope"], ["nope"], ["rate"], ["leaderboard", "x.db", "--format", "pdf"]]
)
def test_an_unknown_option_or_command_is_wrong_input(cli: Any, arguments: list[str]) -> None:
    ended = cli(*arguments)
    assert ended.status == 2
    assert "Error" in ended.err


def test_doctor_says_what_a_configuration_lacks(cli: Any, folder: Path, tmp_path: Path) -> None:
    fine = cli("doctor", folder / "tournament.yaml")
    assert fine.status == 0
    assert "ok       config data: 26 queries, 7 agents, 182 answers, 89 documents" in fine.out
    config = replaced(folder / "tournament.yaml", "prompt: reasoner ", "prompt: resoner ")
    broken = cli("doctor", config)
    assert broken.status == 2
    assert "retrieval.prompt: no prompt named 'resoner'" in broken.out
    assert cli("doctor").status == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
def test_a_log_that_cannot_be_written_ends_the_run_with_one_line(cli: Any, folder: Path) -> None:
    line = refused(cli, "run", folder / "tournament.yaml", "--log-json", "/dev/full")
    assert line == "error: /dev/full: cannot be written: No space left on device"
