"""Relevance judges, one or several, from the tables to the labels: over a real server scripted by passage."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from arena.boards.exports import export_labels, export_qrels
from arena.config.schema import Config
from arena.results.documents import label_distribution
from arena.results.outcomes import labels_of
from arena.run.judging import load_data
from arena.run.plan import plan
from arena.stages.base import RelevanceLabels
from arena.stages.together import TournamentStages
from arena.store import Store, Wanted
from judges.errors import InputError
from judges.types import Judgment, Task, details_of, label_of
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.prompts import RELEVANCE_PROMPTS
from tests.support.tournaments import configured, results, run, write_data

QUERY_TIME = "2025-03-05 10:00:00"
PASSAGES = [
    (
        "cityblog.example",
        "1607891040000",
        "Ten schemes compared",
        "The ten largest schemes of 2020, by bikes.",
    ),
    ("ridemore.example", "1727593686000", "Schemes worth a ride", "Ten schemes with the best reviews this season."),
    ("sharedwheels.example", "1691769600000", "Rankings", "This section holds rankings of bike-share schemes by city."),
    (
        "ministry.example",
        "1387382400000",
        "Cycling law",
        "A hire scheme needs a licence. Fees are due in May.",
    ),
    ("pedal-news.example", "1720865043000", "Where shared bikes thrive", "Some cities stand out. 1. Harbour town: ..."),
    (
        "evening-post.example",
        "1705136820000",
        "Hard to find a bike",
        "Which schemes are out of bikes? We asked.",
    ),
    ("sharedwheels.example", "1676782672000", "Which scheme for you", "Fourteen schemes explained. Click the picture!"),
    ("clips.example", "1729645920000", "Tier list", "Top tier: Port City, Lakeside. Second tier: Old Town, Hillford."),
    (
        "cityblog.example",
        "1720682940000",
        "The 2024 ranking",
        "Schemes, for reference only: top ten ...",
    ),
]
"""Site, publish time, title and text of nine passages, in the shape of seed 003's sample request (section 3.1)."""

OVERALL = [1, 2, 2, 1, 1, 1, 1, 2, 2]
"""The overall labels of the sample response (section 3.2)."""

DOCUMENT = re.compile(r"<<<document ([0-9a-f]{12})>>>\n(.*?)\n<<<end \1>>>", re.DOTALL)


def judged_text(call: Call) -> str:
    found = DOCUMENT.search(call.body["messages"][1]["content"])
    assert found is not None
    return found[2]


def relevance_only(
    folder: Path, base_url: str | None, prompt: str, documents: str = "documents.csv", **sections: Any
) -> Config:
    data = {"queries": [folder / "queries.csv"], "documents": [folder / documents]}
    sections |= {"data": data, "retrieval": {"judge": "judge", "prompt": prompt}, "pairwise": None, "criteria": None}
    return configured(folder, base_url, **sections)


def asked_for(call: Call) -> Any:
    return call.body["response_format"]["json_schema"]["name"]


def quality(overall: int) -> str:
    return json.dumps({"steps": f"So {overall}.", "recency": 1, "match": 3, "trustworthy": 0, "overall": overall})


def by_passage(replies: Mapping[str, str]) -> Callable[[Call], Reply]:
    return lambda call: Reply(replies[judged_text(call)])


@pytest.fixture
def sample(tmp_path: Path) -> Callable[..., Config]:
    rows = [{"qid": "q", "query": "bike-share scheme rankings", "time": QUERY_TIME}]
    documents = [
        {"qid": "q", "did": f"d{number}", "document": text, "title": title, "website": site, "publish_time": int(time)}
        for number, (site, time, title, text) in enumerate(PASSAGES)
    ]
    for name, table in (("queries", rows), ("documents", documents)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table))

    def config(base_url: str, **sections: Any) -> Config:
        data = {name: [tmp_path / f"{name}.jsonl"] for name in ("queries", "documents")}
        retrieval = {"judge": "judge", "prompt": "search_quality"}
        return configured(
            tmp_path, base_url, **{"data": data, "retrieval": retrieval, "pairwise": None, "criteria": None} | sections
        )

    return config


def test_the_sample_request_gives_the_published_score(sample: Callable[..., Config]) -> None:
    replies = {text: quality(overall) for (*_, text), overall in zip(PASSAGES, OVERALL, strict=True)}
    with LLMServer(by_passage(replies)) as server:
        config = sample(server.openai_url)
        assert run(config).complete
    found = results(config, Task.RELEVANCE)
    labels = label_distribution(found.values())
    assert labels.json() == {"mean": pytest.approx(1.4444444444444444, abs=1e-12), "judged": 9, "of": 9, "coverage": 1}
    assert labels.counts == {1: 5, 2: 4}
    for result in found.values():
        assert isinstance(result, Judgment)
        assert details_of(result.outcome) == {"recency": 1, "match": 3, "trustworthy": 0}
        assert result.reason == f"So {label_of(result.outcome)}."
    for call in server.calls:
        held_to = call.body["response_format"]["json_schema"]
        assert held_to["strict"] is True
        assert held_to["schema"]["required"] == ["steps", "recency", "match", "trustworthy", "overall"]
        user = call.body["messages"][1]["content"]
        assert QUERY_TIME in user
        site, _, title, _ = next(passage for passage in PASSAGES if passage[3] == judged_text(call))
        assert f">\n{site}\n<" in user
        assert f">\n{title}\n<" in user
        assert re.search(r"publish time [0-9a-f]{12}>>>\n20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", user)


def test_the_declared_label_of_several_fields_decides_what_the_answer_judge_sees(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])

    def judge(call: Call) -> Reply:
        if asked_for(call) == "relevance":
            shown = "as x" in judged_text(call)
            fields = {"recency": 1, "match": 0 if shown else 3, "trustworthy": 1, "overall": 2 if shown else 0}
            return Reply(json.dumps({"steps": "Looked.", **fields}))
        return Reply('{"explanation": "Read.", "verdict": "A"}')

    with LLMServer(judge) as server:
        config = configured(
            tmp_path,
            server.openai_url,
            retrieval={"judge": "judge", "prompt": "search_quality"},
            pairwise={"judges": ["judge"], "documents": {"threshold": 2}},
            criteria=None,
        )
        assert run(config).complete
    games = [call.body["messages"][1]["content"] for call in server.calls if asked_for(call) == "pairwise"]
    with_x = [text for text in games if "Agent x says" in text]
    assert len(with_x) == 4
    assert all("About q1, as x tells it." in text and "as all tells it" not in text for text in with_x)
    assert all("as y tells it" not in text and "as z tells it" not in text for text in games)


OWN = """
name: own
version: "1"
task: relevance
system: "{{ quoting_rule }} {{ reply_rule }}"
user: '{{ query.text | fenced("question") }} {{ document.text | fenced("document") }}'
reply:
  reason: why
  texts: [quote]
  choices:
    kind: {fact: fact, opinion: opinion}
    grade: {min: 0, max: 4}
  label: grade
"""


def test_a_prompt_of_one_s_own_keeps_its_fields_and_texts(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"])
    (tmp_path / "own.yaml").write_text(OWN)
    fields = {"why": "Because.", "quote": "as it \ud800 says", "kind": "opinion", "grade": 3}
    with LLMServer(lambda call: Reply(json.dumps(fields))) as server:
        config = relevance_only(tmp_path, server.openai_url, str(tmp_path / "own.yaml"))
        assert run(config).complete
    store = Store.open(config.store)
    assert export_labels(store, config.name, tmp_path / "labels.csv") == 4
    with (tmp_path / "labels.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    quote = "as it \ufffd says"
    label = {"qid": "q1", "did": "q1-all", "label": "3", "reason": "Because."}
    assert rows[0] == {**label, "kind": "opinion", "quote": quote}
    export_qrels(store, config.name, tmp_path / "labels.qrels")
    assert (tmp_path / "labels.qrels").read_text().startswith("q1 0 q1-all 3\n")
    store.close()


def test_an_exported_table_of_labels_can_be_replayed(sample: Callable[..., Config], tmp_path: Path) -> None:
    replies = {text: quality(overall) for (*_, text), overall in zip(PASSAGES, OVERALL, strict=True)}
    with LLMServer(by_passage(replies)) as server:
        config = sample(server.openai_url)
        run(config)
    store = Store.open(config.store)
    export_labels(store, config.name, tmp_path / "labels.csv")
    store.close()
    again = sample("", judges={"judge": {"provider": "replay", "path": str(tmp_path / "labels.csv")}}, name="again")
    assert run(again).complete
    assert label_distribution(results(again, Task.RELEVANCE).values()).mean == pytest.approx(13 / 9)


@pytest.mark.parametrize(("stage", "judges"), [("pairwise", {"judges": ["judge"]}), ("criteria", {"judge": "judge"})])
def test_a_threshold_that_no_label_reaches_is_refused_before_anything_is_sent(
    tmp_path: Path, stage: str, judges: dict[str, Any]
) -> None:
    write_data(tmp_path)
    retrieval = {"judge": "judge", "prompt": "sun"}
    others = {"pairwise": None, "criteria": None}

    def opened(**documents: Any) -> TournamentStages:
        config = configured(tmp_path, retrieval=retrieval, **others | {stage: {**judges, "documents": documents}})
        return TournamentStages(config, load_data(config))

    with pytest.raises(InputError, match=f"{stage}.documents.threshold: 2 is above 1, the highest label .* 'sun'"):
        opened(threshold=2).check()
    opened(threshold=1).check()
    opened(threshold=2, include=False).check()
    with pytest.raises(InputError, match="above 1"):
        plan(configured(tmp_path, retrieval=retrieval, **others | {stage: judges}))


def test_the_offline_judge_gives_whole_labels_to_every_packaged_prompt(tmp_path: Path) -> None:
    for name in RELEVANCE_PROMPTS:
        write_data(tmp_path)
        config = relevance_only(tmp_path, None, name, name=name)
        assert run(config).complete, name


WORDS = ("not relevant", "somewhat relevant", "very relevant")
SAID = {"gpt-a": 0, "gpt-b": 2, "gpt-c": 1}


def is_game(call: Call) -> bool:
    return "verdict" in call.body["response_format"]["json_schema"]["schema"]["properties"]


def by_model(call: Call) -> Reply:
    if is_game(call):
        return steady_judge(call)
    label = SAID[call.body["model"]]
    return Reply(json.dumps({"reason": f"{call.body['model']} says {label}.", "label": WORDS[label]}))


def panel(folder: Path, url: str, combine: str, names: str = "abc", **more: Any) -> Config:
    judges = {name: {"provider": "openai", "model": f"gpt-{name}", "base_url": url, "timeout_s": 10} for name in names}
    judges["a"] |= more.pop("a", {})
    retrieval = {"judge": list(names), "combine": combine}
    return configured(
        folder,
        **{
            "judges": judges,
            "retrieval": retrieval,
            "pairwise": {"judges": ["a"], "documents": {"threshold": 1}},
            "criteria": None,
        }
        | more,
    )


@pytest.mark.parametrize(("combine", "label"), [("majority", 0), ("median", 1), ("mean", 1)])
def test_labels_are_combined_and_shown_to_answer_judges(tmp_path: Path, combine: str, label: int) -> None:
    write_data(tmp_path)
    with LLMServer(by_model) as server:
        config = panel(tmp_path, server.openai_url, combine)
        summary = run(config)
        assert summary.complete
        assert summary.stages[Task.RELEVANCE].judged == 3 * 8
        games = [call.body["messages"][1]["content"] for call in server.calls if is_game(call)]
        store = Store.open(config.store)
        labels = labels_of(store, config.name)
        store.close()
        assert {label_of(found.outcome) for found in labels.values() if isinstance(found, Judgment)} == {label}
        spokesman = next(model for model, said in SAID.items() if said == label)
        assert all((f"{spokesman} says {label}." in game) is (label >= 1) for game in games)
        assert run(config).stages[Task.RELEVANCE].known == 24
        (stage,) = [row for row in plan(config).rows if row.task is Task.PAIRWISE]
        assert stage.calls == 0  # the plan combines as the run does, and so finds its games


def test_neither_label_nor_reason_depends_on_which_reply_is_faster(tmp_path: Path) -> None:
    write_data(tmp_path, ["q"], documents=[("q", "d", "Text.", "x")], answers={})
    config = panel(tmp_path, "http://127.0.0.1:9", "median", "ab", a={"samples": 2})
    said = {
        Wanted(Task.RELEVANCE, "a", "q", "d"): Judgment("1", 1, "a's first", "", "m"),
        Wanted(Task.RELEVANCE, "a", "q", "d", sample=1): Judgment("2", 1, "a's second", "", "m"),
        Wanted(Task.RELEVANCE, "b", "q", "d"): Judgment("3", 1, "b's", "", "m"),
    }
    for order in (list(said), list(said)[::-1]):
        labels = RelevanceLabels(config, load_data(config))
        for want in order:
            assert labels.is_open("q")
            labels.take(want, said[want])
        assert not labels.is_open("q")
        (found,) = labels.results.values()
        assert isinstance(found, Judgment)
        assert found.reason == "a's first"


@pytest.mark.parametrize("schedule", [{"kind": "all"}, {"kind": "adaptive"}])
def test_a_judge_that_stops_leaves_documents_open_and_the_run_ends(tmp_path: Path, schedule: dict[str, str]) -> None:
    write_data(tmp_path)
    games = {"judges": ["b"], "documents": {"threshold": 1}, "schedule": schedule}
    with LLMServer() as server:
        server.script = lambda call: (
            Reply("Wrong key.", status=401) if call.body["model"] == "gpt-a" else by_model(call)
        )
        config = panel(tmp_path, server.openai_url, "majority", "ab", pairwise=games)
        summary = run(config)
        assert summary.stopped == [
            f"judge 'a' stopped: gpt-a at {server.openai_url}: HTTP 401: Wrong key; check the key in OPENAI_API_KEY"
        ]
        assert summary.stages[Task.RELEVANCE].judged == 8
        assert not any(map(is_game, server.calls))
        server.script = by_model
        assert run(config).complete
        games_asked = sum(map(is_game, server.calls))
        assert games_asked == 12
        assert run(config).complete
        assert sum(map(is_game, server.calls)) == games_asked
