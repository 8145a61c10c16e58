"""A judge asked again on its card: whether it drifted, on games, grades, labels and nuggets, and what follows."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from arena.boards.leaderboard import TournamentBoard
from arena.calibration import Opinion
from arena.calibration.consensus import settled
from arena.calibration.drift import drift, two_dates
from arena.config.schema import load_config
from arena.data.kinds import KINDS, SUPPORT_WORDS, kind_of, texts_now
from arena.present.blocks import Check
from arena.results.games import read_games
from arena.results.opinions import judges_opinions, nugget_texts
from arena.results.ratings import leaderboard
from arena.run.drift import DRIFT, ask_again
from arena.store import Store
from arena.store.annotations import Annotations
from benchmarks.drift import found, measured, world
from judges.types import Judgment
from retrieval_eval.data.tables import write_rows
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.paired import sign_flip
from tests.arena.boards.test_card import declare, vote
from tests.conftest import CLI
from tests.support.llm_server import Call, LLMServer, Reply, by_name
from tests.support.nugget_judge import nugget_judge

FAST = ("--samples", 50, "--method-samples", 10)


class Changing:
    """A judge by name whose model is replaced at some time: it then says the opposite to a share of prompts."""

    def __init__(self, share: float, model: str = "") -> None:
        self.share, self.model, self.changed = share, model, False

    def __call__(self, call: Call) -> Reply:
        reply = by_name(call)
        if not self.changed:
            return reply
        text = reply.text or ""
        chance = int(hashlib.sha256(call.body["messages"][1]["content"].encode()).hexdigest()[:8], 16) / 2**32
        if chance < self.share:
            text = text.replace('"A"', '"?"').replace('"B"', '"A"').replace('"?"', '"B"')
        return Reply(text, model=self.model)


@pytest.fixture
def changing() -> Changing:
    return Changing(0.3)


@pytest.fixture
def server(changing: Changing) -> Iterator[LLMServer]:
    with LLMServer(changing) as running:
        yield running


def carded(cli: CLI, folder: Path, server: LLMServer, queries: int = 40, **more: Any) -> tuple[Path, Path]:
    config, card = declare(folder, server, queries, **more), folder / "card.json"
    assert cli("run", config).status == 0
    vote(folder)
    ended = cli("calibrate", config, "--card", card, *FAST)
    assert ended.status == 0, ended.err
    return config, card


def since(cli: CLI, config: Path, card: Path) -> Any:
    ended = cli("calibrate", config, "--since", card, "--format", "json")
    assert ended.status == 0, ended.err
    (asked,) = json.loads(ended.out)
    return asked


def same_judge(folder: Path) -> Check | None:
    with closing(Store.open(str(folder / "store.db"))) as store:
        checks = TournamentBoard(leaderboard(store, "small")).verdict()[1]
    return next((check for check in checks if check.name.startswith("Version of the judge")), None)


def test_a_judge_that_stayed_is_asked_once_and_has_not_drifted(cli: CLI, tmp_path: Path, server: LLMServer) -> None:
    config, card = carded(cli, tmp_path, server, judge={"price": {"input": 1, "output": 1}})
    assert same_judge(tmp_path) is None
    server.calls.clear()
    asked = since(cli, config, card)
    assert len(server.calls) == 240
    assert (asked["drift"]["verdict"], asked["drift"]["n"], asked["drift"]["labels"]) == ("no drift found", 120, [])
    assert asked["drift"]["moved"]["value"] == 0
    assert 0 < asked["drift"]["least"] < 0.15
    assert asked["cost_usd"] > 0
    assert since(cli, config, card) == asked
    assert len(server.calls) == 240
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        (finding,) = store.results_named("drift-small-").values()
        assert isinstance(finding, Judgment)
        later = {"tournament": "small-2", "verdict": "drifted", "day": finding.outcome["day"] + 1}
        store.save([(DRIFT, "", replace(finding, judgment_id="drift-small-2-fair", outcome=finding.outcome | later))])
    check = same_judge(tmp_path)
    assert check is not None
    assert check.status == "passed"


def test_a_judge_that_its_provider_changed_is_found_out_and_which_labels_moved(
    cli: CLI, tmp_path: Path, server: LLMServer, changing: Changing
) -> None:
    config, card = carded(cli, tmp_path, server)
    changing.changed, changing.model = True, "fair-2"
    asked = since(cli, config, card)
    found = asked["drift"]
    assert found["verdict"] == "drifted"
    assert found["then"] - found["now"] == pytest.approx(0.35, abs=0.15)
    assert found["difference"]["high"] < 0
    assert {label["then"] for label in found["labels"]} == {1}
    assert len(found["labels"]) == round(found["moved"]["value"] * found["n"])
    assert asked["models"] == [["fair-2026-11"], ["fair-2"]]
    check = same_judge(tmp_path)
    assert check is not None
    assert check.status == "failed"
    assert "drifted" in check.finding
    shown = cli("calibrate", config, "--since", card)
    for words in (
        "drifted",
        "Then fair-2026-11 replied, now fair-2.",
        "Labels that moved",
        "No change of an agent can",
    ):
        assert words in shown.out


def test_items_stay_frozen_when_the_answers_change_and_the_change_is_split_in_two(
    cli: CLI, tmp_path: Path, server: LLMServer, changing: Changing
) -> None:
    config, card = carded(cli, tmp_path, server, 60)
    answers = (tmp_path / "answers.csv").read_text()
    (tmp_path / "answers.csv").write_text(re.sub(r"Agent z says (.*)", r"Agent z says \1 Really.", answers))
    changing.changed = True
    assert cli("run", config).status == 0
    asked = since(cli, config, card)
    assert (asked["drift"]["verdict"], asked["drift"]["n"]) == ("drifted", 180)
    agents = {each["agent"]: each for each in asked["agents"]}
    anew = {"x against y": 0.0, "x against z": 1.0, "y against z": 1.0}
    assert {name: each["anew"] for name, each in agents.items()} == anew
    assert agents["x against y"]["why"] == "nothing of it was judged anew"
    for name in ("x against z", "y against z"):
        pair = agents[name]
        assert pair["then"]["value"] == 1
        assert pair["now"]["value"] < 0.8  # the answers are as bad as before: the judge is another
        assert pair["change"]["low"] < 0 < pair["change"]["high"]
        raw = pair["now"]["value"] - 1
        assert pair["change"]["value"] == pytest.approx(raw - pair["of_judge"]["value"], abs=1e-5)
    assert "Agents on both dates" in cli("calibrate", config, "--since", card).out


def test_an_interrupted_asking_goes_on_and_a_new_day_asks_anew(
    cli: CLI, tmp_path: Path, server: LLMServer, changing: Changing
) -> None:
    config, card = carded(cli, tmp_path, server, 12)
    server.calls.clear()
    ok = server.script
    server.script = lambda call: Reply("", status=401) if len(server.calls) > 20 else ok(call)
    first = since(cli, config, card)
    assert first["failed"] > 0
    done = first["asked"] - first["failed"]
    server.script = ok
    server.calls.clear()
    assert since(cli, config, card)["failed"] == 0
    assert len(server.calls) == 72 - done
    server.calls.clear()
    (one,) = json.loads(card.read_text())["cards"]
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        ask_again(store, load_config(config), one, date(2031, 1, 1))
    assert len(server.calls) == 72


def test_too_few_queries_say_nothing_and_another_model_is_no_drift(
    cli: CLI, tmp_path: Path, server: LLMServer, changing: Changing
) -> None:
    config, card = carded(cli, tmp_path, server, 8)
    changing.changed = True
    asked = since(cli, config, card)
    assert (asked["drift"]["verdict"], asked["drift"]["p"], asked["drift"]["least"]) == ("not known", None, None)
    check = same_judge(tmp_path)
    assert check is not None
    assert check.status == "unknown"
    declare(tmp_path, server, 8, judge={"model": "contrary"})
    refused = cli("calibrate", config, "--since", card)
    assert refused.status != 0
    assert "made with another model or other parameters" in refused.err
    stored = cli("calibrate", tmp_path / "store.db", "--since", card)
    assert "--since: needs the tournament's YAML file" in stored.err
    cli("calibrate", tmp_path / "store.db", "--card", tmp_path / "bare.json", *FAST)
    content = json.loads(card.read_text())
    content["cards"][0]["frozen"]["anchors"] = "none"
    card.write_text(json.dumps(content))
    assert "'frozen' was edited" in cli("calibrate", config, "--since", card).err
    bare = cli("calibrate", config, "--since", tmp_path / "bare.json")
    assert "has no labelled items to ask again" in bare.err


def test_a_board_by_two_versions_of_a_model_says_so(cli: CLI, tmp_path: Path, server: LLMServer) -> None:
    def served(call: Call) -> Reply:
        return Reply(by_name(call).text, model=f"fair-2026-0{1 + len(server.calls) % 2}")

    server.script = served
    config = declare(tmp_path, server, 12)
    assert cli("run", config).status == 0
    check = same_judge(tmp_path)
    assert check is not None
    assert check.status == "failed"
    assert "fair-2026-01 (36) and fair-2026-02 (36)" in check.finding


def opinions(values: np.ndarray, rater: str) -> list[Opinion]:
    return [Opinion(f"q{at}", ("x",), rater, float(value)) for at, value in enumerate(values)]


def test_grades_that_all_rise_are_a_drift_although_people_agree_as_often() -> None:
    then, people = np.tile([0, 2], 30), np.ones(60)
    found = drift("criteria", opinions(then, "j"), opinions(then + 1, "j"), opinions(people, "ann"))
    assert found.verdict == "drifted"
    assert (found.shift.value, found.moved.value) == (1, 1)


@pytest.mark.parametrize(("value", "low", "why"), [(0.1, 0.0, ""), (None, None, "fewer than 10 of its queries")])
def test_a_change_is_corrected_by_the_part_that_was_judged_anew(value: Any, low: Any, why: str) -> None:
    of_judge = Estimate(value, low, None if low is None else 0.2, 9 if low is None else 12)
    found = two_dates("x", Estimate(0.4, 0.3, 0.5), Estimate(0.7, 0.6, 0.8), 0.5, of_judge)
    assert why in found.why
    if not why:
        assert found.change.value == pytest.approx(0.25)
        assert found.change.high is not None
        assert found.change.high - 0.25 == pytest.approx(np.hypot(np.hypot(0.1, 0.1), 0.05))
    assert two_dates("x", Estimate(0.4, 0.3, 0.5), Estimate(0.4), 0.0, None).why == "nothing of it was judged anew"


def agreeing(folder: Path) -> Counter[str]:
    """Let a person say of everything what the judge said; returns how many things by level."""
    with closing(Store.open(str(folder / "store.db"))) as store:
        levels = {kind.level for kind in KINDS.values() if kind.level}
        opinions = judges_opinions(store, "small", read_games(store, "small"), levels)
        data, texts = store.dataset("small"), {key: text for (_, key), text in nugget_texts(store, "small").items()}
        votes = []
        for (level, _), of_judge in opinions.items():
            said = [each._replace(rater="ann") for each in settled(of_judge, verdicts=level == "verdicts")]
            anns = list(kind_of(level).annotations(said))
            if level == "nuggets":
                words = [SUPPORT_WORDS[each.value].replace("no support", "not_support") for each in said]
                keys = [each.item[1] for each in said]
                anns = [replace(ann, other=key, value=word) for ann, key, word in zip(anns, keys, words, strict=True)]
            votes += [replace(ann, texts=texts_now(ann, data, texts) or "") for ann in anns]
        Annotations(store, "small").add(votes)
        return Counter({level: len({each[:2] for each in own}) for (level, _), own in opinions.items()})


def test_whatever_people_label_can_be_frozen_with_the_documents_and_nuggets_that_the_prompt_showed(
    cli: CLI, tmp_path: Path, server: LLMServer
) -> None:
    server.script = nugget_judge
    sections = {
        "retrieval": {"judge": "judge"},
        "pairwise": {"judges": ["judge"], "documents": {"threshold": 1}},
        "criteria": {"judge": "judge", "documents": {"threshold": 1}, "names": ["depth", "tone"]},
        "nuggets": {"judge": "one", "create": {"window": 2}},
    }
    judge = {"provider": "openai", "model": "fair", "base_url": server.openai_url}
    judges = {"judge": {**judge, "samples": 3, "seed": 7}, "one": judge}
    config, card = declare(tmp_path, server, 12, judges=judges, **sections), tmp_path / "card.json"
    assert cli("run", config).status == 0
    things = agreeing(tmp_path)
    assert set(things) == {"verdicts", "labels", "criteria", "nuggets"}
    ended = cli("calibrate", config, "--card", card, *FAST)
    assert ended.status == 0, ended.err
    cards = {each["level"]: each for each in json.loads(card.read_text())["cards"]}
    assert {level: each["frozen"]["left_out"] for level, each in cards.items()} == dict.fromkeys(things, 0)
    ended = cli("calibrate", config, "--since", card, "--format", "json")
    assert ended.status == 0, ended.err
    asked = {each["level"]: each for each in json.loads(ended.out)}
    assert {level: each["drift"]["n"] for level, each in asked.items()} == dict(things)
    assert {each["drift"]["verdict"] for each in asked.values()} <= {"no drift found", "drifted"}
    assert asked["nuggets"]["drift"]["moved"]["value"] == 0


def test_conversations_are_the_units(cli: CLI, tmp_path: Path, server: LLMServer, changing: Changing) -> None:
    config = declare(tmp_path, server, 24)
    queries = [{"qid": f"q{at:02}", "query": f"What is q{at:02}?", "conversation": f"c{at // 2}"} for at in range(24)]
    write_rows(tmp_path / "queries.csv", ["qid", "query", "conversation"], queries)
    assert cli("run", config).status == 0
    vote(tmp_path)
    assert cli("calibrate", config, "--card", tmp_path / "card.json", *FAST).status == 0
    changing.changed = True
    found = since(cli, config, tmp_path / "card.json")["drift"]
    assert (found["n"], found["queries"], found["verdict"]) == (72, 12, "drifted")


def test_in_simulation_few_judges_that_stayed_drift_and_the_many_tests_at_once_are_those_of_drift() -> None:
    rng = np.random.default_rng(3)
    level: Any = "criteria"
    for planted, share in ((0.0, (0.0, 0.032)), (0.2, (0.75, 1.0))):
        rate = found(rng, 400, level, (60, 2), planted=planted, by_chance=True)
        assert share[0] <= rate <= share[1]
        worlds = [world(rng, (20, 2), level, planted, by_chance=True) for _ in range(10)]
        for people, then, now in worlds:
            sums = np.array([((now == people) * 1.0 - (then == people)).sum(axis=1), (now - then).sum(axis=1)])
            p = measured(people, then, now, level).p
            assert p == pytest.approx(min(1, 2 * min(sign_flip(sums))), abs=0.02)


def test_the_smallest_drift_that_would_be_found_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(5)
    shape: Any = ((50, 2), "verdicts")
    least = measured(*world(rng, *shape, 0.0, by_chance=False), shape[1]).least
    assert least is not None
    assert 0.7 <= found(rng, 400, shape[1], shape[0], planted=least, by_chance=False) <= 0.95
