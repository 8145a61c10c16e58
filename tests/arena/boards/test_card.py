"""A judge's card: what makes it yes, no or not known, what it is bound to, and a gate that demands it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from arena.boards.leaderboard import with_people
from arena.config.settings import StoredSettings, read_cards, seal
from arena.data.kinds import CRITERIA, KINDS, RELEVANCE, VERDICT, Annotation, texts_digest
from arena.results.cards import NO_CARD, bound_to, lacking_cards
from arena.results.ratings import leaderboard
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import InputError
from tests.conftest import CLI
from tests.support.llm_server import LLMServer, by_name
from tests.support.sample_store import SETTINGS
from tests.support.tournaments import write_data

PEOPLE = ("ann", "bob", "eve")


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(by_name) as running:
        yield running


def declare(folder: Path, server: LLMServer, queries: int = 20, **more: Any) -> Path:
    """Data and configuration; ``judge`` adds to the judge's declaration."""
    write_data(folder, [f"q{number:02}" for number in range(queries)])
    judge = {"provider": "openai", "model": "fair", "base_url": server.openai_url, **more.pop("judge", {})}
    content = {
        "name": "small",
        "store": "store.db",
        "data": {name: f"{name}.csv" for name in ("queries", "documents", "answers")},
        "judges": {"judge": judge},
        "pairwise": {"judges": ["judge"], "documents": {"include": False}},
        "ratings": {"elo": {"tournaments": 20}, "bootstrap": {"samples": 100}},
        **more,
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    return folder / "small.yaml"


def vote(folder: Path, people: Sequence[str] = PEOPLE, error: float = 0.15) -> None:
    """Let people judge every game by name as well, with errors of their own."""
    with closing(Store.create(str(folder / "store.db"))) as store:
        data, said = store.dataset("small"), []
        for person in people:
            chance = random.Random(person)
            for query_id, query in data.queries.items():
                for better, worse in (("x", "y"), ("x", "z"), ("y", "z")):
                    answers = [data.answers[query_id, agent].text for agent in (better, worse)]
                    verdict = "B" if chance.random() < error else "A"
                    texts = texts_digest(query.text, *answers)
                    said.append(Annotation("verdict", person, query_id, better, worse, texts, verdict))
        Annotations(store, "small").add(said)


def carded(cli: CLI, config: Path, *options: Any) -> Any:
    """The card that the command writes."""
    path = config.parent / "card.json"
    ended = cli("calibrate", config, "--card", path, "--samples", 50, "--method-samples", 10, *options)
    assert ended.status == 0, ended.err
    (card,) = json.loads(path.read_text())["cards"]
    return card


@pytest.mark.parametrize(
    ("model", "queries", "people", "verdict"),
    [
        ("fair", 20, PEOPLE, "yes"),
        ("contrary", 20, PEOPLE, "no"),
        ("fair", 20, PEOPLE[:2], "not known"),
        ("fair", 9, PEOPLE, "not known"),
        ("fair", 20, (), "not known"),
    ],
)
def test_a_card_says_yes_or_no_only_where_enough_people_judged_enough(
    cli: CLI, tmp_path: Path, server: LLMServer, model: str, queries: int, people: Sequence[str], verdict: str
) -> None:
    config = declare(tmp_path, server, queries, judge={"model": model})
    assert cli("run", config).status == 0
    vote(tmp_path, people)
    card = carded(cli, config)
    assert (card["judge"], card["level"], card["verdict"]) == ("judge", "verdicts", verdict)
    assert card["alternative_test"]["epsilon"] == 0.1
    if verdict == "yes":
        assert card["alternative_test"]["passed_clustered"]
        assert [own["items"] for own in card["alternative_test"]["raters"]] == [60, 60, 60]
        assert card["figures"]["kappa"]["low"] < card["figures"]["kappa"]["value"] < 1


def test_the_page_says_the_verdict_and_shows_epsilon_and_the_test(cli: CLI, tmp_path: Path, server: LLMServer) -> None:
    config = declare(tmp_path, server, card={"epsilon": 0.2}, judge={"price": {"input": 1, "output": 1}})
    assert cli("run", config).status == 0
    vote(tmp_path)
    ended = cli("calibrate", config, "--card", tmp_path / "card.html", "--expires", "2031-05-01", "--samples", 50)
    assert "May judge stand in for people on games? Yes." in ended.err
    page = re.sub(r"<[^>]+>", " ", (tmp_path / "card.html").read_text())
    for words in ("Yes", "epsilon 0.2", "good until 1 May 2031", "it replaces 3 of 3 people", "Kappa", "Cost of 1000"):
        assert words in page
    cli("report", config, "--out", tmp_path / "report.html")
    assert "May judge stand in for people on games?" in (tmp_path / "report.html").read_text()


def test_cards_of_two_judges_say_which_agrees_more_with_people(cli: CLI, tmp_path: Path, server: LLMServer) -> None:
    judges = {
        name: {"provider": "openai", "model": name, "base_url": server.openai_url} for name in ("fair", "contrary")
    }
    config = declare(tmp_path, server, judges=judges, pairwise={"judges": [*judges], "documents": {"include": False}})
    assert cli("run", config).status == 0
    vote(tmp_path)
    written = [tmp_path / f"card.{ending}" for ending in ("json", "html")]
    ended = cli(
        "calibrate", config, "--samples", 50, "--method-samples", 10, "--card", written[0], "--card", written[1]
    )
    assert ended.status == 0, ended.err
    assert "Two judges" in ended.out
    (one,), (other,) = (card["pairs"] for card in json.loads(written[0].read_text())["cards"])
    assert one == other
    assert {one["first"], one["second"]} == {*judges}
    assert one["verdict"] == ("better" if one["first"] == "fair" else "worse")
    assert "Two judges" in written[1].read_text()
    shown = cli("leaderboard", config)  # the panel ties always, so that people correct it by the same everywhere
    assert shown.status == 0, shown.err
    assert "win rates lie elsewhere than panel (majority)" in " ".join(shown.out.split())


def test_a_judge_asked_again_in_a_new_store_is_held_against_what_it_said(
    cli: CLI, tmp_path: Path, server: LLMServer
) -> None:
    written = {}
    for store, model in (("store.db", "fair"), ("later.db", "contrary")):
        config = declare(tmp_path, server, store=store, judge={"model": model})
        assert cli("run", config).status == 0
        written[store] = tmp_path / f"{model}.csv"
        assert cli("export", "verdicts", config, written[store]).status == 0
    vote(tmp_path)
    people = tmp_path / "people.csv"
    config = declare(tmp_path, server, store="store.db")
    assert cli("export", "votes", config, people).status == 0
    ended = cli("calibrate", written["later.db"], written["store.db"], "--people", people, "--format", "json")
    assert ended.status == 0, ended.err
    (pair,) = json.loads(ended.out)["comparisons"][0]["pairs"]
    assert (pair["first"], pair["second"]) == ("judge (contrary)", "judge (fair)")
    assert (pair["n"], pair["verdict"]) == (60, "worse")


def test_a_gate_that_demands_a_card_decides_nothing_without_a_valid_one(
    cli: CLI, tmp_path: Path, server: LLMServer
) -> None:
    demanded = {"card": {"required": "card.json"}}
    config = declare(tmp_path, server, **demanded)

    def gated() -> tuple[int, str]:
        ended = cli("gate", config, "--new", "x", "--old", "z")
        return ended.status, ended.out

    status, said = gated()
    assert status == 3
    assert "judge has no card for verdicts" in said
    assert "Judge has no card for verdicts." in " ".join(findings(tmp_path))
    vote(tmp_path)
    carded(cli, config)
    asked = len(server.calls)
    assert gated()[0] == 0
    assert "Every judge's card says yes." in findings(tmp_path)
    assert len(server.calls) == asked  # a card changes nothing of what was judged
    declare(tmp_path, server, judge={"temperature": 0.5}, **demanded)
    status, said = gated()
    assert status == 3
    assert "was made with another model, prompt or parameters" in said
    declare(tmp_path, server, **demanded)
    assert gated()[0] == 0
    carded(cli, config, "--expires", "2020-01-01")
    status, said = gated()
    assert status == 3
    assert "expired on 2020-01-01" in said


def test_an_adaptive_gate_without_a_card_asks_for_no_more_than_a_batch(
    cli: CLI, tmp_path: Path, server: LLMServer
) -> None:
    pairwise = {"judges": ["judge"], "documents": {"include": False}, "schedule": {"kind": "adaptive", "batch": 3}}
    config = declare(tmp_path, server, card={"required": "card.json"}, pairwise=pairwise)
    assert cli("gate", config, "--new", "x", "--old", "z").status == 3
    assert len(server.calls) == 6


def findings(folder: Path) -> list[str]:
    """What the trust checks found."""
    with closing(Store.open(str(folder / "store.db"))) as store:
        return [check.finding for check in with_people(store, leaderboard(store, "small")).verdict()[1]]


def test_a_card_is_bound_to_model_prompt_and_parameters_and_to_nothing_else() -> None:
    def bound(**changed: Any) -> str:
        return bound_to(
            StoredSettings.model_validate({**SETTINGS, "prompts": {"pairwise": "1"}, **changed}), "strict", VERDICT
        )

    known = bound()
    assert known
    assert bound(ratings={}) == bound(criteria=None) == bound(prompts={"pairwise": "1", "criteria": "2"}) == known
    others = [
        bound(judges={"strict": {"provider": "openai", "model": "judge-2", "temperature": 0.0}}),
        bound(judges={"strict": {"provider": "openai", "model": "judge-1", "temperature": 0.1}}),
        bound(prompts={"pairwise": "2"}),
        bound(pairwise={**SETTINGS["pairwise"], "factors": "brevity"}),
    ]
    assert len({known, *others}) == 5
    assert bound(judges={}) == ""


def test_whatever_people_judge_can_have_a_card() -> None:
    for kind in KINDS.values():
        bound_to(StoredSettings.model_validate(SETTINGS), "strict", kind)
        held = StoredSettings.model_validate({**SETTINGS, "card": {"cards": []}})
        assert len(lacking_cards(held, kind, date(2030, 1, 1))) == 1


def test_every_level_needs_its_own_card_and_exams_have_none() -> None:
    section = {"cards": [], "epsilon": 0.1}
    settings = StoredSettings.model_validate({**SETTINGS, "card": section, "exam": {"judge": "strict", "bank": "a1b2"}})
    today = date(2030, 1, 1)
    assert lacking_cards(settings, RELEVANCE, today) == ["strict has no card for labels"]
    assert lacking_cards(settings, None, today) == [NO_CARD]
    assert lacking_cards(StoredSettings.model_validate(SETTINGS), None, today) == []
    card = {"judge": "strict", "level": "criteria", "bound_to": bound_to(settings, "strict", CRITERIA)}
    for verdict, expires, epsilon, lacking in (
        ("yes", "2030-01-01", "0.1", []),
        ("no", "2030-01-01", "0.1", ["the card of strict for criteria says no"]),
        ("yes", "2029-12-31", "0.1", ["the card of strict for criteria expired on 2029-12-31"]),
        ("yes", "2030-01-01", "0.3", ["the card of strict for criteria allows an epsilon of 0.3, more than 0.1"]),
    ):
        given = {**card, "verdict": verdict, "expires": expires, "epsilon": epsilon}
        held = StoredSettings.model_validate({**SETTINGS, "card": {**section, "cards": [given]}})
        assert lacking_cards(held, CRITERIA, today) == lacking


@pytest.mark.parametrize(("name", "value"), [("verdict", "yes"), ("expires", "2040-01-01"), ("epsilon", 0.5)])
def test_a_card_that_somebody_edited_is_refused(tmp_path: Path, name: str, value: object) -> None:
    card = {"judge": "strict", "level": "verdicts", "verdict": "no", "bound_to": "", "expires": "2030-01-01"}
    sealed = {**card, "epsilon": 0.1, "seal": seal({**card, "epsilon": 0.1})}
    path = tmp_path / "card.json"
    path.write_text(json.dumps({"cards": [sealed]}))
    assert read_cards(path)[0]["verdict"] == "no"
    path.write_text(json.dumps({"cards": [{**sealed, name: value}]}))
    with pytest.raises(InputError, match="card of strict for verdicts was edited after it was written"):
        read_cards(path)


@pytest.mark.parametrize("text", ["[]", '{"cards": [{"judge": "a"}]}', '{"cards": 3}', "no json"])
def test_a_file_that_holds_no_cards_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(InputError, match=r"card\.json"):
        read_cards(tmp_path / "card.json")


def test_a_card_needs_a_tournament_and_a_known_ending(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "j.csv").write_text("qid,agent_a,agent_b,verdict\nq,a,b,A\n")
    refused = cli("calibrate", tmp_path / "j.csv", "--people", tmp_path / "j.csv", "--card", tmp_path / "c.json")
    assert (refused.status, "--card: needs a tournament" in refused.err) == (2, True)
    refused = cli("calibrate", tmp_path / "s.db", "--card", tmp_path / "c.txt")
    assert (refused.status, "--card" in refused.err) == (2, True)
