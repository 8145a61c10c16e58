"""Names of commands and options: how ``--help`` lists them, and that those of the version before still work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from typer.main import get_group

from arena.cli.app import app
from arena.cli.commands import COMMANDS, overview
from arena.cli.old_names import OLD, Old, translate_old_names
from docs.make_reference import commands_of, parameters_of
from tests.conftest import CLI


def test_the_overview_lists_every_command_once_under_its_group(cli: CLI) -> None:
    said = cli("--help")
    assert said.status == 0
    assert said.out == overview()
    for name, entry in COMMANDS.items():
        assert len(re.findall(rf"^  {name} +{re.escape(entry.summary)}$", said.out, flags=re.MULTILINE)) == 1
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_command_begins_its_help_as_the_overview_has_it() -> None:
    for name, said in commands_of(get_group(app)):
        if name in COMMANDS:
            assert said.startswith(COMMANDS[name].summary), name


BEFORE = {
    "demo --dir d": "demo --out d",
    "synth s.yaml --json": "make queries s.yaml --format json",
    "agents run c.yaml --out d": "make answers c.yaml --out d",
    "agents retrieve --corpus c.csv --queries q.csv --out r": "retrieve --corpus c.csv --queries q.csv --out r",
    "batches s.db": "failures --batches s.db",
    "pool --run a --depth 5": "metrics --run a --pool 5",
    "qrels agreement h.qrels --seed 1 a.qrels b.qrels": "calibrate --seed 1 a.qrels b.qrels --people h.qrels",
    "qrels export --out o.qrels s.db": "export --what qrels s.db o.qrels",
    "votes list s.db": "export --what votes s.db",
    "votes export s.db o.csv --kind verdict": "export --what votes s.db o.csv --kind verdict",
    "votes import s.db v.csv --kind verdict": "import v.csv --kind verdict --store s.db",
    "import v.csv --store s.db --name t": "import v.csv --store s.db --tournament t",
    "exam generate c.yaml --retry-failed b.jsonl": "make bank c.yaml --retry-failed --out b.jsonl",
    "exam grade c.yaml": "make grades c.yaml",
    "exam score g.csv": "exam g.csv",
    "exam qrels g.csv o.qrels": "exam --show labels g.csv --out o.qrels",
    "exam agreement g.csv --qrels h": "exam --show agreement g.csv --qrels h",
    "exam oversight g.csv --show grid": "exam --show summary g.csv --show grid",
    "exam import g.jsonl.gz d": "convert g.jsonl.gz d",
    "exam export g.csv o.jsonl.gz": "convert g.csv o.jsonl.gz",
    "bank show b.csv": "bank b.csv",
    "bank diff b.csv c.csv": "bank b.csv c.csv",
    "bank convert b.csv c.yaml": "convert b.csv c.yaml",
    "nuggets create c.yaml": "make nuggets c.yaml",
    "nuggets assign c.yaml": "make assignments c.yaml",
    "nuggets edit a b --out o --by ann": "bank a b --out o --editor ann",
    "nuggets score a --relevant 2": "nuggets a --min-label 2",
    "nuggets correlate a b --column v": "nuggets a --score v --with b",
    "calibrate t --skip-empty --games ordered": "calibrate t --skip-faulty --as-games",
    "calibrate t --people-column label=gold": "calibrate t --column people:label=gold",
    "calibrate t --games reconciled": "calibrate t --reconcile",
    "retrieve --rrf-k 3 --model m --model-path f": "retrieve --set rrf_k=3 --set model=m --set path=f",
    "documents d --max-mb 3 --max-pages=4": "documents d --set megabytes=3 --set pages=4",
    "rate v.csv --k 16 --skip-self-play --position": "rate v.csv --set k=16 --skip-faulty --set position=true",
    "leaderboard c.yaml --quick --details": "leaderboard c.yaml --details",
    "rate v.csv --json": "rate v.csv --format json",
    "rate v.csv --bootstrap=9": "rate v.csv --samples 9",
    "rate v.csv --bootstrap 9": "rate v.csv --samples 9",
}


@pytest.mark.parametrize("words", BEFORE)
def test_an_old_name_works_and_todays_is_said(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert " ".join(translate_old_names(words.split())) == BEFORE[words]
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("note: ")
    assert " is now " in said
    assert said.endswith("; the old names work until the next version")


def test_every_old_name_is_tried() -> None:
    assert {name for name in OLD if not any(words.startswith(f"{name} ") for words in BEFORE)} == set()


def test_todays_names_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("rate -- --json", "exam g.csv --show grid", "bank b.csv", "store check s.db"):
        assert " ".join(translate_old_names(words.split())) == words
    assert capsys.readouterr().err == ""


def test_old_names_lead_to_commands_and_options_that_there_are() -> None:
    known = dict(parameters_of(get_group(app)))
    for then, old in OLD.items():
        words = [*old.now.split(), *" ".join([*_renamed(old), *old.arguments.values()]).split()]
        name = next(name for name in (" ".join(words[:2]), words[0]) if name in known)
        options = {word for word in words if word.startswith("--")}
        assert options <= known[name], then
        assert then == name or then not in known


def _renamed(old: Old) -> Iterator[str]:
    for today in old.options.values():
        yield from today.values() if isinstance(today, Mapping) else [today]
