"""A gate that asks the judge itself: only what it needs, batch by batch with an adaptive schedule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.boards.gate.board import GateBoard
from arena.boards.gate.judged import decide
from arena.config.schema import Config
from arena.run.ledger import Progress
from judges.errors import InputError
from judges.types import Task
from retrieval_eval.stats.paired import level_of_look
from tests.conftest import CLI
from tests.support.llm_server import LLMServer, by_name
from tests.support.tournaments import Quiet, configured, write_data

QUERIES = [f"q{number}" for number in range(20)]


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(by_name) as running:
        yield running


def of_games(folder: Path, server: LLMServer, kind: str = "adaptive", **schedule: Any) -> Config:
    write_data(folder, QUERIES)
    if kind == "adaptive":
        schedule = {"batch": 5, **schedule}
    games = {"judges": ["judge"], "documents": {"include": False}, "schedule": {"kind": kind, **schedule}}
    return configured(folder, server.openai_url, pairwise=games, retrieval=None, criteria=None)


def quiet() -> AbstractContextManager[Progress]:
    return nullcontext(Quiet())


def gated(config: Config, new: str, old: str, **options: Any) -> GateBoard:
    return decide(config, new, old, quiet, lambda part: None, **options)


def test_a_gate_plays_no_more_games_than_decide(tmp_path: Path, server: LLMServer) -> None:
    config = of_games(tmp_path, server)
    found = gated(config, "x", "z")
    assert found.passed
    played = found.scores[0].result.difference.n
    assert played is not None
    assert played in (10, 15)
    assert len(server.calls) == 2 * played
    assert found.scores[0].result.difference.method == "alpha spending"
    assert gated(config, "x", "z").json() == found.json()
    assert len(server.calls) == 2 * played  # nothing was asked again
    assert gated(config, "z", "x").verdict == "worse"


def test_every_look_counts_whoever_looked(tmp_path: Path, server: LLMServer) -> None:
    def level(config: Config) -> tuple[int | None, float]:
        (own,) = gated(config, "x", "y").scores
        return own.result.difference.n, own.level

    config = of_games(tmp_path, server, batch=20)
    assert level(config)[1] == pytest.approx(0.95)  # a single look at all there is
    (tmp_path / "again").mkdir()
    config = of_games(tmp_path / "again", server, batch=10)
    first = level(config)
    assert level(config) == first  # the same looks again
    finer = of_games(tmp_path / "again", server, batch=5)
    found, own = level(finer)
    assert found is not None
    assert own < level_of_look([0.5], 0.95)  # the look at 5 games spent something, however little
    assert any("of a gate that looks after each batch" in note for note in gated(finer, "x", "y").scores[0].notes)


def test_a_limit_of_games_holds(tmp_path: Path, server: LLMServer) -> None:
    found = gated(of_games(tmp_path, server, max_games=3), "x", "z")
    assert (found.verdict, found.scores[0].result.difference.n) == ("undecided", 3)


def test_a_gate_on_a_group_asks_only_of_its_queries(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    config = of_games(tmp_path, server)
    kinds = [f"{name},What is {name}?,{'odd' if number % 2 else 'even'}" for number, name in enumerate(QUERIES)]
    (tmp_path / "queries.csv").write_text("\n".join(["qid,query,kind", *kinds]), encoding="utf-8")
    found = gated(config, "x", "z", group=("kind", "even"))
    assert found.headline == "Passed: x is better than z, on queries where kind=even."
    assert (found.scores[0].result.difference.n, len(server.calls)) == (10, 20)
    assert found.json()["group"] == {"column": "kind", "value": "even", "of": 2}
    assert gated(config, "x", "z", group=("kind", "odd")).tournament != found.tournament
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(json.loads(config.model_dump_json(exclude_unset=True))))
    command = ("gate", path, "--new", "x", "--old", "z", "--group", "kind=even")
    assert cli(*command, "--report", tmp_path / "r.html").status == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("where kind=even where kind=even") == 0
    assert "--tournament &#x27;small: x against z where kind=even&#x27;" in page, "its figures are those of the gate"
    with pytest.raises(InputError, match="no query has kind=prime; groups are kind=even, kind=odd"):
        gated(config, "x", "z", group=("kind", "prime"))


def test_names_are_checked_before_anything_is_sent(tmp_path: Path, server: LLMServer) -> None:
    config = of_games(tmp_path, server)
    with pytest.raises(InputError, match="no agent 'w'"):
        gated(config, "w", "x")
    with pytest.raises(InputError, match="no section 'exam'"):
        gated(config, "x", "z", on=["pairwise", "exam"])
    assert not server.calls


def test_other_scores_judge_their_own_stage_alone(tmp_path: Path) -> None:
    write_data(tmp_path, QUERIES[:6])
    config = configured(tmp_path)
    parts: list[Any] = []
    found = decide(config, "x", "z", quiet, parts.append, on=["criteria"])
    assert [own.on for own in found.scores] == ["criteria"]
    assert parts[-1].stages.keys() == {Task.RELEVANCE, Task.CRITERIA}


def test_the_command_plays_and_says(tmp_path: Path, server: LLMServer, cli: CLI) -> None:
    config = of_games(tmp_path, server)
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(json.loads(config.model_dump_json(exclude_unset=True))))
    ended = cli("gate", path, "--new", "x", "--old", "z", "--format", "json")
    assert (ended.status, json.loads(ended.out)["verdict"]) == (0, "better")
    ended = cli("gate", config.store, "--tournament", "small: x against z", "--new", "z", "--old", "x")
    assert (ended.status, ended.err) == (1, "")
