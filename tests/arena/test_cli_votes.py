"""``votes``: what people said, listed, out and in, as its users see it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arena.stages.nuggets.people import annotations_of, sheets
from arena.stages.nuggets.results import nugget_results
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.nuggets.types import Support
from tests.support.tournaments import write_data

CONFIG = """
name: small
store: store.db
data: {queries: queries.csv, answers: answers.csv}
judges: {judge: {provider: lexical}}
nuggets: {judge: judge, bank: bank.jsonl}
"""
BANK = [
    {
        "qid": query,
        "query": f"What is {query}?",
        "nuggets": [{"text": f"{query} is xxx", "importance": "vital"}, {"text": "no", "importance": "okay"}],
    }
    for query in ("q1", "q2")
]


@pytest.fixture
def config(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tournament of two queries and three agents whose nuggets the offline baseline has assigned."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    Path("bank.jsonl").write_text("".join(json.dumps(line) + "\n" for line in BANK))
    Path("small.yaml").write_text(CONFIG)
    assert cli("run", "small.yaml").status == 0
    return "small.yaml"


def assess(annotator: str, *labels: Support | None, answers: int = 6) -> None:
    """Say the same of the first answers that an assessor is given."""
    with closing(Store.open("store.db")) as store:
        results = nugget_results(store, "small")
        assert results is not None
        todo = sheets(results.banks, store.dataset("small").answers.values(), annotator)[:answers]
        Annotations(store, "small").add(said for sheet in todo for said in annotations_of(sheet, labels, annotator))


def test_what_a_person_assigned_is_scored_and_held_against_the_judge(config: str, cli: Any) -> None:
    assess("ann", Support.FULL, Support.NONE)
    out = cli("votes", "export", config, "ann.jsonl", "--kind", "nuggets")
    assert (out.status, out.out) == (0, "wrote ann.jsonl: 12 of 12 labels by ann, answers: 6\n"), out.err
    scored = json.loads(cli("nuggets", "score", "ann.jsonl", "--json").out)["runs"]
    assert {run: (own["v_strict"], own["a"]) for run, own in scored.items()} == dict.fromkeys("xyz", (1.0, 0.5))
    assert cli("nuggets", "assign", config).status == 0
    compared = json.loads(cli("nuggets", "correlate", "ann.jsonl", "assignments.jsonl", "--column", "a", "--json").out)
    assert compared["nuggets"]["assignment"]["n"] == 12


def test_of_several_people_one_is_named(config: str, cli: Any) -> None:
    for name in ("ann", "bob"):
        assess(name, Support.FULL, Support.NONE, answers=1)
    refused = cli("votes", "export", config, "o.jsonl", "--kind", "nuggets")
    assert (refused.status, refused.err) == (2, "error: small: name one of the annotators with --annotator: ann, bob\n")
    refused = cli("votes", "export", config, "o.jsonl", "--kind", "nuggets", "--annotator", "eve")
    assert "there is no 'eve'; name one" in refused.err
    done = cli("votes", "export", config, "o.jsonl", "--kind", "nuggets", "--annotator", "bob")
    assert done.out.splitlines() == [
        "wrote o.jsonl: 2 of 2 labels by bob, answers: 1",
        "- answers that are not assessed yet, left out: 5",
    ]
    assert "--force" in cli("votes", "export", config, "o.jsonl", "--kind", "nuggets", "--annotator", "bob").err


def test_a_file_of_assignments_is_taken_as_a_person_s_once(config: str, cli: Any) -> None:
    assess("ann", Support.PARTIAL, Support.NONE)
    assert cli("votes", "export", config, "ann.jsonl", "--kind", "nuggets").status == 0
    for new in (12, 0):
        done = cli("votes", "import", config, "ann.jsonl", "--kind", "nuggets", "--annotator", "bob")
        assert done.out == f"12 labels by bob, {new} of them new, answers: 6\n", done.err
    cli("votes", "export", config, "bob.jsonl", "--kind", "nuggets", "--annotator", "bob")
    assert Path("bob.jsonl").read_bytes() == Path("ann.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "small.yaml", "o.jsonl", "--kind", "nuggets"), "small: nobody has said anything of this kind yet"),
        (("import", "small.yaml", "none.jsonl", "--kind", "nuggets", "--annotator", "a"), "none.jsonl: no such file"),
        (
            ("import", "small.yaml", "bank.jsonl", "--kind", "nuggets", "--annotator", "a"),
            "bank.jsonl:1: the answer has neither",
        ),
        (("import", "small.yaml", "bank.jsonl", "--kind", "nuggets", "--annotator", " "), "1 to 80 characters"),
        (("list", "none.db"), "none.db: no store there"),
    ],
)
def test_mistakes_are_one_line(config: str, cli: Any, arguments: tuple[str, ...], said: str) -> None:
    ended = cli("votes", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_tournament_without_nuggets_is_said(config: str, cli: Any) -> None:
    Path("plain.yaml").write_text(
        CONFIG.replace("small", "plain").partition("nuggets:")[0] + "criteria: {judge: judge}\n"
    )
    assert cli("run", "plain.yaml").status == 0
    ended = cli("votes", "export", "plain.yaml", "o.jsonl", "--kind", "nuggets")
    assert (ended.status, ended.err.count("has no nuggets yet")) == (2, 1)
