"""Queries of several models about documents: planned, asked once, filtered, drawn by quotas, reviewed by people."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from arena.data.files import load_dataset
from arena.run.plan import Plan, plan_queries
from arena.run.queries import SynthReport, synthesise
from arena.stages.queries import by_quota, drawn, read_examples, sampled_passages
from arena.stages.queries_config import SynthConfig
from arena.store import Store
from arena.store.runs import Runs
from judges.errors import InputError
from judges.types import Document, Task
from retrieval_eval.data.tables import read_rows, write_rows
from retrieval_eval.documents.types import FileNote
from tests.support.llm_server import Call, LLMServer, Reply
from tests.support.query_writers import synth_config, ten_each, texts_of, write_documents
from tests.support.tournaments import Quiet

MODELS = ["gpt", "opus", "sonnet", "haiku"]
QUOTAS = {"gpt": 100, "opus": 50, "sonnet": 30, "haiku": 20}
"""The paper's, of 840 queries (004, section 4)."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-dummy")


def run(config: SynthConfig, **options: Any) -> SynthReport:
    return synthesise(config, Quiet(), **options)


def rows(path: Path) -> list[dict[str, str]]:
    return [{name: row.text(name) for name in row.values} for row in read_rows(path)]


def test_840_queries_of_four_models_become_200_by_quotas(tmp_path: Path) -> None:
    write_documents(tmp_path, 21)
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, MODELS, quotas=QUOTAS, sample={"seed": 4})
        report = run(config)
        assert len(server.calls) == 84
        first = (tmp_path / "queries.csv").read_bytes()
        again = run(config)
        assert len(server.calls) == 84, "nothing is asked twice"
        assert (tmp_path / "queries.csv").read_bytes() == first
    assert report.complete
    assert again.complete
    assert sum(report.generated.values()) == 840
    assert report.kept == QUOTAS
    written = rows(tmp_path / "queries.csv")
    assert Counter(row["generator"] for row in written) == QUOTAS
    assert len({row["qid"] for row in written}) == len({row["query"] for row in written}) == 200
    assert sum(report.by_source.values()) == 200
    for row in written:
        number = int(row["source"][1:4])
        assert row["query"].startswith(f"What does {row['generator']} need of subject{number} in case ")
        assert row["passage"] == f"{row['source']}#l1"
        assert (row["title"], row["prompt"], row["seed"]) == (f"Document {number}", "synthetic_queries@1", "4")
    assert len(load_dataset(tmp_path / "queries.csv").queries) == 200


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("experts.txt", "Which sensor?\n\n  What, and why?\n"),
        ("experts.txt", "query\nWhich sensor?\nWhat, and why?\n"),
        ("experts", "Which sensor?\r\nWhat, and why?"),
        ("experts.csv", 'query\nWhich sensor?\n"What, and why?"\n'),
        ("experts.jsonl", '{"query": "Which sensor?"}\n{"query": "What, and why?"}\n'),
        ("experts.csv", 'qid,question\n1,Which sensor?\n2,"What, and why?"\n'),
        ("experts.tsv", "1\tWhich sensor?\n2\tWhat, and why?\n"),
        ("topics.txt", "1\tWhich sensor?\n2\tWhat, and why?\n"),
    ],
)
def test_experts_queries_are_a_list_or_a_table_with_a_column_query(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_examples(tmp_path / name) == ["Which sensor?", "What, and why?"]


def test_the_experts_queries_are_shown_as_many_as_asked_and_the_same_to_every_model(tmp_path: Path) -> None:
    write_documents(tmp_path, 6)
    experts = [f"Which sensor suits case {letter}?" for letter in "abcdefgh"]
    write_rows(tmp_path / "e.csv", ["qid", "query"], [{"qid": q[-2], "query": q} for q in experts])
    with LLMServer(ten_each) as server:
        examples = {"examples": str(tmp_path / "e.csv"), "shots": 3}
        report = run(synth_config(tmp_path, server.openai_url, ["gpt", "opus"], **examples))
        shown = Counter(texts_of(call)["queries of experts"] for call in server.calls)
    assert set(shown.values()) == {2}
    assert len(shown) == 6, "drawn anew for each passage"
    for listed in shown:
        lines = [line.partition(". ")[2] for line in listed.splitlines()]
        assert len(lines) == 3
        assert set(lines) <= set(experts)
    assert report.similarity is not None
    assert report.example_similarity is not None
    assert report.example_similarity.n == 8
    assert report.example_similarity.least == 3 / 4  # sensor, suit and case of these and the letter
    assert report.similarity.greatest == 1 / 7  # case, of sensor, suit, case, gpt, need, subject0 and 0


def test_queries_are_dropped_with_the_reason(tmp_path: Path) -> None:
    write_documents(tmp_path, 1)
    write_rows(tmp_path / "e.csv", ["qid", "query"], [{"qid": "1", "query": "How do I reset it?"}])
    said = {
        "gpt": [
            "According to the passage, what is alpha?",
            "How do i RESET it",
            "Which of the many small sensors measures heat best?",
            "Which package does TLE4971 come in, and for how much money?",
            "Which package does TLE4972 come in, and for how much money?",
            "What does the table of contents of a book list?",
        ],
        "opus": [
            "which of the many small sensors measures heat, best",
            "Which of the many small sensors measures heat?",
        ],
    }

    def judge(call: Call) -> Reply:
        return Reply(json.dumps({"queries": said[call.body["model"]]}))

    with LLMServer(judge) as server:
        filters = {"near_duplicates": 0.85}
        review = str(tmp_path / "review.csv")
        config = synth_config(
            tmp_path,
            server.openai_url,
            ["gpt", "opus"],
            examples=str(tmp_path / "e.csv"),
            filters=filters,
            review=review,
        )
        report = run(config)
    state = {row["query"]: row for row in rows(tmp_path / "review.csv")}
    assert state[said["gpt"][0]]["why"] == "speaks of its source, which a user does not see"
    assert state[said["gpt"][1]]["why"] == "repeats an example"
    same = [said["gpt"][2], said["opus"][0]]
    (kept,) = [query for query in (*same, said["opus"][1]) if state[query]["state"] != "dropped"]
    for query in {*same, said["opus"][1]} - {kept}:
        assert state[query]["why"].startswith(
            ("the same as another query: sq-", "nearly the same as another query: sq-")
        )
        assert state[kept]["qid"] in state[query]["why"]
    assert {said["gpt"][3], said["gpt"][4], said["gpt"][5]} <= {row["query"] for row in rows(tmp_path / "queries.csv")}
    dropped = Counter({reason: sum(models.values()) for reason, models in report.dropped.items()})
    assert dropped["source"] == dropped["example"] == 1
    assert dropped["duplicate"] + dropped["near_duplicate"] == 2
    assert sum(report.kept.values()) == 4


def test_only_queries_that_the_quotas_depend_on_are_held_against_their_passage(tmp_path: Path) -> None:
    write_documents(tmp_path, 5)
    with LLMServer(ten_each) as server:
        models = ["gpt", "opus"]
        config = synth_config(
            tmp_path, server.openai_url, models, quotas={"gpt": 12, "opus": 4}, filters={"answerable": "opus"}
        )
        report = run(config)
        asked = [texts_of(call)["query"] for call in server.calls if "query" in texts_of(call)]
        calls = len(server.calls)
        run(config)
        assert len(server.calls) == calls
    written = rows(tmp_path / "queries.csv")
    assert report.complete
    assert report.kept == {"gpt": 12, "opus": 4}
    assert all(int(row["query"][-2]) % 2 == 0 for row in written)
    assert {row["query"] for row in written} <= set(asked)
    assert len(asked) == len(set(asked)) < 100
    unanswerable = sum(report.dropped["unanswerable"].values())
    assert unanswerable == len(asked) - 16
    assert report.summary is not None
    assert report.summary.stages[Task.ANSWERABLE].wanted == len(asked)


def test_a_query_whose_check_fails_is_not_used_and_the_run_is_incomplete(tmp_path: Path) -> None:
    write_documents(tmp_path, 2)

    def judge(call: Call) -> Reply:
        return Reply("I cannot say.") if texts_of(call).get("query", "").endswith("4?") else ten_each(call)

    with LLMServer(judge) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt"], filters={"answerable": "gpt"})
        report = run(config)
    assert report.dropped["unchecked"] == {"gpt": 2}
    assert not report.complete
    assert not any(row["query"].endswith("4?") for row in rows(tmp_path / "queries.csv"))


def test_a_checking_judge_that_stops_lets_nothing_unchecked_through(tmp_path: Path) -> None:
    write_documents(tmp_path, 3)

    def judge(call: Call) -> Reply:
        return Reply("no credit", status=401) if "query" in texts_of(call) else ten_each(call)

    with LLMServer(judge) as server:
        models = ["gpt", "checker"]
        config = synth_config(tmp_path, server.openai_url, models, filters={"answerable": "checker"})
        report = run(config.model_copy(update={"synth": config.synth.model_copy(update={"models": ["gpt"]})}))
    assert report.kept == {}
    assert report.dropped["unchecked"] == {"gpt": 30}
    assert not report.complete
    assert report.summary is not None
    assert report.summary.stopped


def test_a_model_that_fails_costs_only_its_own_queries(tmp_path: Path) -> None:
    write_documents(tmp_path, 3)
    broken = {"on": True}

    def judge(call: Call) -> Reply:
        bad = broken["on"] and call.body["model"] == "opus"
        return Reply('{"queries": "many"}') if bad else ten_each(call)

    with LLMServer(judge) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt", "opus"])
        report = run(config)
        assert (report.kept, report.complete) == ({"gpt": 30}, False)
        broken["on"] = False
        assert run(config).kept == {"gpt": 30}, "a reply outside its contract is asked for again only when told to"
        assert run(config, retry_failed=True).kept == {"gpt": 30, "opus": 30}


def test_a_model_may_find_nothing_to_ask(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, 2)
    (folder / "d000.md").write_text('Reply with {"queries": []} or with {"queries": ["One?"]}.')
    with LLMServer(lambda _: Reply('{"queries": []}')) as server:
        report = run(synth_config(tmp_path, server.openai_url, ["gpt"], quotas={"gpt": 1}))
    assert report.summary is not None
    assert report.summary.complete
    assert report.short == {"gpt": (0, 1)}
    assert (tmp_path / "queries.csv").read_text() == "qid,query\n"


def test_files_that_cannot_be_read_are_said_and_the_others_asked_about(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, 2)
    (folder / "bad.pdf").write_bytes(b"%PDF")
    (folder / "picture.png").write_bytes(b"x")
    with LLMServer(ten_each) as server:
        report = run(synth_config(tmp_path, server.openai_url, ["gpt"]))
    ((source, reason),) = [(each.source, each.reason) for each in report.skipped]
    assert (source, reason.partition(":")[0]) == ("bad.pdf", "is broken")
    assert isinstance(report.skipped[0], FileNote)
    assert report.other_files == {".png": 1}
    assert (report.documents, report.passages, report.complete) == (2, 2, False)


def test_near_duplicate_passages_are_asked_about_once(tmp_path: Path) -> None:
    folder = write_documents(tmp_path, 1)
    (folder / "copy.md").write_text((folder / "d000.md").read_text())
    with LLMServer(ten_each) as server:
        report = run(synth_config(tmp_path, server.openai_url, ["gpt"]))
        assert len(server.calls) == 1
    (twin,) = report.twins
    assert (twin.ident, twin.kept, twin.similarity) == ("d000.md#l1", "copy.md#l1", 1.0)


def test_people_accept_edit_and_reject_and_the_draw_goes_on_from_there(tmp_path: Path) -> None:
    write_documents(tmp_path, 3)
    review = tmp_path / "review.csv"
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt"], quotas={"gpt": 4}, review=str(review))
        assert run(config).review == "written"
        before = rows(tmp_path / "queries.csv")
        listed = rows(review)
        assert [row["qid"] for row in listed[:4]] == [row["qid"] for row in before]
        assert {row["state"] for row in listed[4:]} == {"reserve"}
        listed[0] |= {"decision": "Edit", "query": "What do I need?"}
        listed[1]["decision"] = "reject"
        for row in listed[2:6]:
            row["decision"] = "accept"
        write_rows(review, list(listed[0]), listed)
        calls = len(server.calls)
        assert run(config).review == "left as it is, since it holds decisions"
        finished = config.model_copy(update={"synth": config.synth.model_copy(update={"reviewed": review})})
        report = run(finished)
        assert len(server.calls) == calls
    after = rows(tmp_path / "queries.csv")
    assert [row["qid"] for row in after] == [listed[place]["qid"] for place in (0, 2, 3, 4)]
    assert [row["decision"] for row in after] == ["edit", "accept", "accept", "accept"]
    assert after[0]["query"] == "What do I need?"
    assert after[0]["generated"] == before[0]["query"]
    assert after[0]["passage"] == before[0]["passage"]
    assert (report.dropped, report.undecided, report.summary) == ({"rejected": {"gpt": 1}}, 24, None)
    assert report.complete


REVIEW = ["qid", "decision", "query", "generated", "generator"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"decision": "maybe"}, r"review\.csv:3: a decision is one of accept, edit, reject, or empty \('maybe'\)"),
        ({"decision": "accept", "query": "New?"}, r"review\.csv:3: the query was changed; write edit \('New\?'\)"),
        ({"decision": "edit"}, r"review\.csv:3: the decision is edit, but the query is unchanged"),
        ({"decision": "edit", "query": " "}, r"review\.csv:3: the query is empty; write reject"),
        ({"decision": "accept", "qid": "a"}, r"review\.csv:3: this query id is accepted in .*review\.csv:2 already"),
        ({"decision": "edit", "query": "one?"}, r"review\.csv:3: this text is accepted in .*review\.csv:2 already"),
    ],
)
def test_a_decision_that_cannot_be_meant_is_refused_with_its_line(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    path = tmp_path / "review.csv"
    first = {"qid": "a", "decision": "accept", "query": "One?", "generated": "One?", "generator": "gpt"}
    second = {"qid": "b", "decision": "", "query": "Two?", "generated": "Two?", "generator": "gpt"}
    write_rows(path, REVIEW, [first, second | changed])
    config = synth_config(tmp_path, "http://127.0.0.1:9/v1", ["gpt"], reviewed=str(path))
    with pytest.raises(InputError, match=said):
        run(config)
    write_rows(path, REVIEW, [second])
    with pytest.raises(InputError, match=r"review\.csv: accepts no query; write accept or edit"):
        run(config)


ids = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), unique=True, max_size=60)
quotas = st.dictionaries(st.sampled_from("abc"), st.integers(1, 20), min_size=1)
Query = tuple[str, int]


def draw(items: list[Query], seed: int, wanted: dict[str, int]) -> list[Query]:
    return by_quota(drawn(items, seed, str), wanted, lambda item: item[0])


@given(ids, st.integers(0, 9), quotas, st.randoms())
def test_a_draw_fills_quotas_without_replacement_and_in_any_order_the_same(
    items: list[Query], seed: int, wanted: dict[str, int], order: object
) -> None:
    chosen = draw(items, seed, wanted)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(items)
    there, counts = Counter(model for model, _ in items), Counter(model for model, _ in chosen)
    assert counts == {model: min(quota, there[model]) for model, quota in wanted.items() if there[model]}
    shuffled = list(items)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert draw(shuffled, seed, wanted) == chosen


@given(ids, st.integers(0, 9), quotas)
def test_what_is_taken_away_changes_a_draw_only_where_it_stood(
    items: list[Query], seed: int, wanted: dict[str, int]
) -> None:
    chosen = draw(items, seed, wanted)
    for gone in chosen[:3]:
        again = draw([item for item in items if item != gone], seed, wanted)
        assert set(chosen) - {gone} <= set(again)
        assert len(set(again) - set(chosen)) <= 1


def test_another_seed_draws_others_and_every_item_about_as_often() -> None:
    items = [("a", number) for number in range(20)]
    drawn_by_seed = [frozenset(draw(items, seed, {"a": 5})) for seed in range(400)]
    assert len(set(drawn_by_seed)) > 390
    counts = Counter(item for chosen in drawn_by_seed for item in chosen)
    assert all(60 < counts[item] < 145 for item in items)  # 100 expected, five standard deviations of 8.7 around it


def test_without_quotas_all_are_taken() -> None:
    assert by_quota([("a", 1), ("b", 2)], {}, lambda item: item[0]) == [("a", 1), ("b", 2)]


def test_a_sample_of_passages_grows_without_changing_what_it_has() -> None:
    passages = [Document(f"d{number}", "text") for number in range(30)]
    few, more = (sampled_passages(passages, number, 7) for number in (5, 12))
    assert more[:5] == few
    assert sampled_passages(passages[::-1], 5, 7) == few
    assert sampled_passages(passages, 5, 8) != few


SECTION: dict[str, Any] = {
    "quotas": {"gpt": 12, "opus": 30},
    "filters": {"answerable": "gpt"},
    "sample": {"passages": 2},
}


def calls(made: Plan) -> dict[tuple[str, str], int]:
    return {(row.task.value, row.judge): row.calls for row in made.rows if row.calls}


def test_a_plan_of_queries_counts_what_a_run_sends(tmp_path: Path) -> None:
    write_documents(tmp_path, 3)
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt", "opus"], **SECTION)
        made = plan_queries(config)
        assert (server.calls, (tmp_path / "synth.db").exists()) == ([], False)
        report = synthesise(config, Quiet())
    writing = {("queries", "gpt"): 2, ("queries", "opus"): 2}
    assert calls(made) == writing | {("answerable", "gpt"): 12 + 20}, "as if every query that is checked is answered"
    assert report.summary is not None
    sent = {task.value: stage.calls for task, stage in report.summary.stages.items()}
    assert sent == {"queries": 4, "answerable": 40}, "half of the queries are not, so all are checked"
    assert calls(plan_queries(config)) == {}
    said = "\n".join(made.notes)
    assert (
        "passages asked about: 2 of 3 (documents: 3); about each up to 10 queries of each model, for quotas of" in said
    )
    assert "synth: opus can write 20 queries at most, fewer than its quota of 30" in said
    assert "gpt comes to" not in said


def test_what_a_killed_run_has_left_is_planned_with_the_queries_it_has(tmp_path: Path) -> None:
    write_documents(tmp_path, 2)
    with LLMServer(ten_each) as server:
        config = synth_config(tmp_path, server.openai_url, ["gpt"], out=str(tmp_path / "queries.csv"))
        synthesise(config, Quiet())
        checking = synth_config(tmp_path, server.openai_url, ["gpt"], filters={"answerable": "gpt"}, quotas={"gpt": 7})
        assert calls(plan_queries(checking)) == {("answerable", "gpt"): 7}


def test_a_tournament_without_its_queries_is_planned_as_far_as_that_goes(cli: Any, tmp_path: Path) -> None:
    write_documents(tmp_path, 2)
    content: dict[str, Any] = {
        "name": "t",
        "store": "t.db",
        "data": {"corpus": "documents"},
        "judges": {"words": {"provider": "lexical"}},
        "synth": {"documents": "documents", "models": ["words"], "quotas": {"words": 2}, "out": "queries.csv"},
        "agents": {name: {"kind": "rag", "retriever": "bm25"} for name in "xy"},
        "pairwise": {"judges": "words"},
    }
    config = tmp_path / "t.yaml"
    config.write_text(yaml.safe_dump(content))
    first = cli("plan", config)
    assert first.status == 0, first.err
    assert first.out.splitlines()[1].split()[:6] == ["Queries", "written,", "by", "passage", "words", "2"]
    assert "'ragleague run CONFIG --stage synth', then plan again" in first.out
    assert cli("run", config, "--stage", "synth").status == 0
    with closing(Store.open(str(tmp_path / "t.db"))) as store:
        (made,) = Runs(store, "t").all()
    assert (made.state, made.spent["queries"].judged, made.stages["queries"]["wanted"]) == ("complete", 2, 2)
    second = json.loads(cli("plan", config, "--format", "json").out)
    assert [(row["task"], row["calls"]) for row in second["stages"]] == [("queries", 0)]
    assert [row["agent"] for row in second["agents"]] == ["x", "y"]


def with_near_misses(call: Call) -> Reply:
    """Four queries a passage, and four that it does not answer, of which the first one is answered elsewhere."""
    texts, system = texts_of(call), call.body["messages"][0]["content"]
    if "query" in texts:
        answered = "price 0" in texts["query"] or "case" in texts["query"]
        return Reply(json.dumps({"reason": "So it is.", "answerable": "yes" if answered else "no"}))
    subject, near = texts["passage"].split()[-1], "near miss" in system
    words = "What is the price {} of document {}?" if near else "What is in case {} of {}?"
    return Reply(json.dumps({"queries": [words.format(number, subject) for number in range(4)]}))


def test_queries_that_nothing_answers_are_near_misses_checked_by_another_judge(tmp_path: Path) -> None:
    write_documents(tmp_path, 12)
    unanswerable = {"number": 5, "judge": "opus", "documents": 3}
    with LLMServer(with_near_misses) as server:
        config = synth_config(
            tmp_path, server.openai_url, ["gpt"], judges=["opus"], unanswerable=unanswerable, quotas={"gpt": 7}
        )
        with closing(Store.create(config.store)):
            planned = plan_queries(config)
        report = run(config)
        asked = len(server.calls)
        again = run(config)
        assert len(server.calls) == asked
        checks = [call for call in server.calls if "query" in texts_of(call)]
    assert {call.body["model"] for call in checks} == {"opus"}
    assert all(call.body["messages"][1]["content"].count("<<<passage ") in (3, 4) for call in checks)
    assert isinstance(planned, Plan)
    written = rows(tmp_path / "queries.csv")
    assert Counter(row["answerable"] for row in written) == {"true": 7, "false": 5}
    assert all(("price" in row["query"]) is (row["answerable"] == "false") for row in written)
    assert not any("price 0" in row["query"] for row in written)
    assert report.complete
    assert again.complete
    assert report.kept == {"gpt": 7, "(unanswerable)": 5}
    assert set(report.dropped) <= {"answered"}
    queries = load_dataset(tmp_path / "queries.csv").queries.values()
    assert Counter(query.answerability for query in queries) == {"answerable": 7, "unanswerable": 5}


def test_who_writes_a_query_does_not_check_that_nothing_answers_it(tmp_path: Path) -> None:
    write_documents(tmp_path, 1)
    with pytest.raises(ValueError, match="'gpt' writes the queries itself; name another judge"):
        synth_config(tmp_path, "http://127.0.0.1:1/v1", ["gpt"], unanswerable={"number": 1, "judge": "gpt"})
