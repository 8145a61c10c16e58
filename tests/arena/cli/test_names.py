"""Names of commands and options: how ``--help`` lists them, and what is said of a wrong command line."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

import ragleague
from arena.cli.app import app
from arena.cli.commands import COMMANDS, CommandGroup, overview
from docs.make_reference import commands_of
from tests.conftest import CLI

SUMMARIES = {name: entry.summary for name, entry in COMMANDS.items() if not isinstance(entry, CommandGroup)} | {
    f"{name} {below}": command.summary
    for name, entry in COMMANDS.items()
    if isinstance(entry, CommandGroup)
    for below, command in entry.commands.items()
}


def test_the_overview_lists_every_command_once_under_its_group(cli: CLI) -> None:
    said = cli("--help")
    assert said.status == 0
    assert said.out == overview()
    for name, entry in COMMANDS.items():
        assert len(re.findall(rf"^  {name} +{re.escape(entry.summary)}$", said.out, flags=re.MULTILINE)) == 1
    assert max(map(len, said.out.splitlines())) <= 80


@pytest.mark.parametrize("name", [name for name, entry in COMMANDS.items() if isinstance(entry, CommandGroup)])
def test_the_help_of_a_group_lists_its_commands(cli: CLI, name: str) -> None:
    said, entry = cli(name, "--help"), COMMANDS[name]
    assert isinstance(entry, CommandGroup)
    assert said.status == 0
    for below, command in entry.commands.items():
        assert re.search(rf"^  {below} +{re.escape(command.summary)}$", said.out, flags=re.MULTILINE)
    assert max(map(len, said.out.splitlines())) <= 100


def test_a_command_begins_its_help_as_the_lists_have_it() -> None:
    assert dict(commands_of(get_group(app))) == SUMMARIES


def test_no_help_of_a_command_names_an_option_of_another(cli: CLI) -> None:
    for name in ("make queries", "make bank", "export data", "exam labels", "exam grid", "pool", "bank show"):
        said = cli(*name.split(), "--help").out
        options = set(re.findall(r"^  (--[\w-]+)", said, flags=re.MULTILINE))
        assert set(re.findall(r"--[a-z][\w-]+", said)) == options, name


def test_the_help_of_a_group_imports_no_command() -> None:
    code = (
        "import sys\nsys.argv = ['ragleague', 'exam', '--help']\nfrom arena.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('LOADED', *({'numpy', 'pydantic', 'arena.cli.exam', 'arena.config'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1].split() == ["LOADED"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("mak bank", "no command 'mak'; did you mean 'make'?"),
        ("make bonk", "make: no command 'bonk'; did you mean 'bank'?"),
        (
            "export x.yaml out.csv --what data",
            "export: no command 'x.yaml'; known are criteria, data, labels, qrels, query-labels, scores, verdicts, "
            "votes",
        ),
        (
            "make queries t.yaml --secret",
            "make queries: no option '--secret'; 'ragleague make queries --help' lists them",
        ),
        ("--vers", "no option '--vers'; did you mean '--version'?"),
        (
            "make bank t.yaml",
            "make bank: --out is missing: output file for the test bank: .yaml, .csv, .tsv, .jsonl or .parquet",
        ),
        ("make bank", "make bank: CONFIG is missing: YAML file with the configuration"),
        ("make bank t.yaml --out", "--out: a value is missing; write it after the option"),
        ("make bank t.yaml --out=b.csv --force=yes", "--force: takes no value; leave out what follows '='"),
        ("make bank t.yaml b.csv c.csv --out b", "make bank: unexpected 'b.csv c.csv'; this command takes CONFIG"),
        ("rate v.csv --as-games --reconcile", "--reconcile: says the opposite of --as-games; give one of them"),
        ("exam labels g --out a --out b", "--out: is given twice; give it once"),
        ("exam labels g --out a --by most", "--by: must be highest or count, not 'most'"),
        ("exam score g --compat x", "--compat: must be workbench, not 'x'"),
        ("exam score g --k 0", "--k: must be at least 1, not '0'"),
        ("exam score g --k 1.5", "--k: must be a whole number, not '1.5'"),
        ("calibrate t.yaml --expires soon", "--expires: must be a date such as 2030-12-31, not 'soon'"),
    ],
)
def test_a_wrong_command_line_is_said_in_our_words(cli: CLI, words: str, line: str) -> None:
    ended = cli(*words.split())
    assert (ended.status, ended.out, ended.err) == (2, "", f"error: {line}\n")


def test_exported_data_make_the_same_tournament(cli: Any, played_demo: Path, tmp_path: Path) -> None:
    cli("export", "data", played_demo / "tournament.yaml", tmp_path / "data")
    for name in ("tournament.yaml", "exam.csv", "nuggets.jsonl", "rag-handbook.db"):
        shutil.copy(played_demo / name, tmp_path / "data")
    again = cli("run", tmp_path / "data/tournament.yaml", "--format", "json")
    assert again.err.count(" 0 calls") == 8
    assert again.out == cli("leaderboard", played_demo / "tournament.yaml", "--format", "json").out


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """Twelve agents with long names; each of the first five beats every later agent and is therefore separated."""
    agents = [f"Retriever {number} with a long name (13B)" for number in range(12)]
    lines = [("qid", "agent_a", "agent_b", "verdict", "judge")]
    for i, strong in enumerate(agents):
        for j in range(i + 1, 12):
            lines += [(f"q{query}", strong, agents[j], "B" if i >= 5 and query == 0 else "A", "j") for query in (0, 1)]
    with (tmp_path / "long.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    return tmp_path / "long.csv"


def test_notes_that_repeat_for_many_agents_are_told_thrice(cli: Any, long_names: Path) -> None:
    quick = ("--samples", "50", "--set", "tournaments=5")
    told = json.loads(cli("rate", long_names, *quick, "--format", "json").out)["notes"]
    alike = [note for note in told if note.startswith("No maximum of the likelihood: ")]
    assert len(alike) > 4
    printed = cli("rate", long_names, *quick).out
    assert printed.count("No maximum of the likelihood: ") == 4
    assert f"No maximum of the likelihood: {len(alike) - 3} more, all in JSON" in printed


def test_without_queries_more_games_are_needed_not_more_queries(cli: Any, tmp_path: Path) -> None:
    table = tmp_path / "v.csv"
    table.write_text("agent_a,agent_b,verdict\n" + "x,y,A\ny,x,B\ny,x,A\n" * 10, encoding="utf-8")
    printed = cli("rate", table).out
    assert " more games like these" in printed
    assert "More games needed" in printed
    assert "more queries" not in printed


@pytest.mark.parametrize(
    "what", ["import arena", "import arena.cli; import sys; sys.argv = ['ragleague', '--help']; arena.cli.main()"]
)
def test_starting_up_loads_nothing_heavy(what: str) -> None:
    heavy = ["numpy", "pandas", "scipy", "pyarrow", "sqlalchemy", "openai", "anthropic", "torch", "streamlit"]
    script = f"import atexit, sys\natexit.register(lambda: print('loaded', *({heavy} & sys.modules.keys())))\n{what}"
    script = script.replace(str(heavy), f"set({heavy})")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_the_version_is_printed_alone(cli: Any) -> None:
    told = cli("--version")
    assert (told.status, told.out, told.err) == (0, f"ragleague {ragleague.__version__}\n", "")
