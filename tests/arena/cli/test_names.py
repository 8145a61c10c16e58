"""Names of commands and options: how ``--help`` lists them, and what is said of a wrong command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.main import get_group

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
            "export: no command 'x.yaml'; known are criteria, data, labels, qrels, query-labels, verdicts, votes",
        ),
        (
            "make queries t.yaml --secret",
            "make queries: no option '--secret'; 'ragleague make queries --help' lists them",
        ),
        ("--vers", "no option '--vers'; did you mean '--version'?"),
        ("make bank t.yaml", "make bank: --out is missing: file to write the test bank into: .jsonl, .yaml, .csv ..."),
        ("make bank", "make bank: CONFIG is missing: YAML file with the configuration"),
        ("make bank t.yaml --out", "--out: a value is missing; write it after the option"),
        ("make bank t.yaml --out=b.csv --force=yes", "--force: takes no value; leave out what follows '='"),
        ("make bank t.yaml b.csv c.csv --out b", "make bank: unexpected 'b.csv c.csv'; give only CONFIG"),
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
