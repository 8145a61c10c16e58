"""Names of commands and options: how ``--help`` lists them, and that those of the version before still work."""

from __future__ import annotations

import re

import pytest
from typer.main import get_group

from arena.cli.app import app
from arena.cli.commands import COMMANDS, overview
from arena.cli.old_names import OLD, renewed
from docs.make_reference import commands_of, parameters_of
from tests.conftest import CLI


def test_the_overview_lists_every_command_once_under_its_group(cli: CLI) -> None:
    said = cli("--help")
    assert said.status == 0
    assert said.out == overview()
    for name, listed in COMMANDS.items():
        assert len(re.findall(rf"^  {name} +{re.escape(listed.says)}$", said.out, flags=re.MULTILINE)) == 1
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_command_begins_its_help_as_the_overview_has_it() -> None:
    for name, said in commands_of(get_group(app)):
        if name in COMMANDS:
            assert said.startswith(COMMANDS[name].says), name


@pytest.mark.parametrize(
    ("words", "today", "told"),
    [
        ("rate v.csv --json", "rate v.csv --format json", "--json is now --format json"),
        ("rate v.csv --bootstrap=9", "rate v.csv --samples 9", "--bootstrap is now --samples"),
        ("rate v.csv --bootstrap 9", "rate v.csv --samples 9", "--bootstrap is now --samples"),
        ("rate -- --json", "rate -- --json", ""),
    ],
)
def test_an_old_name_works_and_todays_is_said(
    words: str, today: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert " ".join(renewed(words.split())) == today
    said = capsys.readouterr().err
    assert said == (f"note: {told}; the old names work until the next version\n" if told else "")


def test_old_names_lead_to_commands_and_options_that_there_are() -> None:
    known = dict(parameters_of(get_group(app)))
    for then, old in OLD.items():
        words = [*old.now.split(), *" ".join([*old.options.values(), *old.arguments.values()]).split()]
        name = next(name for name in (" ".join(words[:2]), words[0]) if name in known)
        options = {word for word in words if word.startswith("--")}
        assert options <= known[name], then
        assert then == name or then not in known
