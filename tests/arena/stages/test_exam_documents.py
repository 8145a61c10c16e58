"""An exam of retrieved documents: each graded once, cut where it is long, scored by every agent's ranking of them."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import Config
from arena.data.dataset import EVERY_AGENT
from arena.run.plan import plan
from judges.errors import InputError
from retrieval_eval.data.tables import write_rows
from tests.support.exams import ITEMS, LAYERS, ORGAN, PIONEERS, exam_config, graded, grades, user, write_exam
from tests.support.llm_server import Call, LLMServer, Reply

TEXTS = {
    "layers": "The epidermis is outside.",
    "organ": "The skin is an organ.",
    "long": "Skin is soft, they say it is.\n\nThe epidermis is outside and it protects.",
    "elvis": "Elvis was a pioneer.",
}
RANKINGS = {("skin", "one"): ["layers", "long"], ("skin", "two"): ["long", "organ"], ("rock", "two"): ["elvis"]}
PASSAGES = 4
ALL = 2 * PASSAGES + 1
KNOWN = {LAYERS: "epidermis is outside", ORGAN: "organ", PIONEERS: "Elvis"}


def documents_config(folder: Path, url: str | None = None, **section: Any) -> Config:
    write_exam(folder, section.pop("items", ITEMS), section.pop("columns", ("qid", "question")))
    shared = section.pop("shared", False)
    rows = [
        {"qid": query_id, "did": doc_id, "document": TEXTS[doc_id], "rank": rank} | ({} if shared else {"agent": agent})
        for (query_id, agent), ranking in RANKINGS.items()
        for rank, doc_id in enumerate(ranking, start=1)
        if not shared or agent == "one"
    ]
    columns = ["qid", "did", "document", "rank", *([] if shared else ["agent"])]
    write_rows(folder / "documents.csv", columns, rows)
    data = {name: [folder / f"{name}.csv"] for name in ("queries", "documents", "answers")}
    return exam_config(folder, url, beside={"data": data} | section.pop("beside", {}), texts="documents", **section)


def knows(call: Call) -> Reply:
    text = user(call)
    return Reply(
        "5" if any(item in text and words in text.split("<<<question")[0] for item, words in KNOWN.items()) else "0"
    )


def test_a_document_of_several_agents_is_graded_once_and_scored_in_each_ranking(tmp_path: Path, cli: Any) -> None:
    with LLMServer(knows) as server:
        config = documents_config(tmp_path, server.openai_url)
        assert [row.calls for row in plan(config).rows] == [ALL]
        ended = graded(config)
        assert len(server.calls) == ALL
    assert ended.summary.complete
    (source,) = ended.study.source.grades.values()
    assert {entry.passage_id for entry in source} == {"layers", "organ", "long#1of2", "long#2of2", "elvis"}
    assert grades(config)["long", LAYERS] == 5, "a document answers if one of its passages does"
    assert ended.scores is not None
    covers, diverse = (ended.scores.by_level[5][measure].means for measure in ("cover", "alpha_ndcg"))
    assert covers["one"].value == 0.25, "one of skin's two items, and nothing was retrieved for rock"
    assert covers["two"].value == 1.0
    skin = (1 + 1 / log2(3)) / (1 + 1 / log2(3) + 0.5 / 2)  # the best order of all three has a second passage on layers
    assert diverse["two"].value == pytest.approx((skin + 1) / 2)
    assert ended.scores.cover.present.sum(axis=1).tolist() == [1, 2]
    assert ended.scores.cover.pairs.sum(axis=1).tolist() == [4, 5]
    shown = cli("leaderboard", config.store, "--details")
    assert "the first 20 documents of an agent cover" in shown.out
    assert (
        json.loads(cli("leaderboard", config.store, "--format", "json").out)["exam"]["settings"]["texts"] == "documents"
    )


def test_only_the_first_documents_of_each_ranking_are_graded(tmp_path: Path) -> None:
    with LLMServer(knows) as server:
        ended = graded(documents_config(tmp_path, server.openai_url, depth=1))
    assert ended.study.rankings == {
        ("skin", "one"): ("layers",),
        ("skin", "two"): ("long",),
        ("rock", "two"): ("elvis",),
    }
    assert {entry.passage_id for entry in ended.study.grades} == {"layers", "long", "elvis"}


def test_a_passage_without_a_grade_leaves_its_document_ungraded(tmp_path: Path) -> None:
    def fails(call: Call) -> Reply:
        return Reply("4 out of 5") if "protects" in user(call) else knows(call)

    with LLMServer(fails) as server:
        ended = graded(documents_config(tmp_path, server.openai_url))
    assert not ended.summary.complete
    grid = ended.study.grids.grids["skin"]
    assert grid.ungraded == 2
    assert grid.grades[grid.rows(["long"])].tolist() == [[-1, -1]]


def test_documents_that_all_agents_were_given_have_one_row(tmp_path: Path) -> None:
    with LLMServer(knows) as server:
        ended = graded(documents_config(tmp_path, server.openai_url, shared=True))
    assert ended.scores is not None
    assert list(ended.scores.places(ended.scores.level)) == [EVERY_AGENT]


def test_checked_answers_of_documents_come_from_the_passage_that_is_right(tmp_path: Path) -> None:
    keyed = [("skin", LAYERS, "epidermis")]

    def extracts(call: Call) -> Reply:
        return Reply("the epidermis" if "epidermis" in user(call) else "unanswerable")

    with LLMServer(extracts) as server:
        columns = ("qid", "question", "answers")
        config = documents_config(tmp_path, server.openai_url, items=keyed, columns=columns, grading="extraction_words")
        ended = graded(config)
    found = {entry.passage_id: (entry.grade, entry.answer) for entry in ended.study.grades}
    assert found == {"layers": (1, "the epidermis"), "organ": (0, ""), "long": (1, "the epidermis")}


def test_people_labelled_documents_and_so_an_exam_of_them_has_their_labels(tmp_path: Path) -> None:
    (tmp_path / "human.qrels").write_text("skin 0 layers 2\nskin 0 organ 0\n")
    with LLMServer(knows) as server:
        config = documents_config(tmp_path, server.openai_url)
        section = config.data.model_copy(update={"qrels": [tmp_path / "human.qrels"]})
        ended = graded(config.model_copy(update={"data": section}))
    assert ended.study.labels == {"skin": {"layers": 2, "organ": 0}}


def test_an_exam_of_documents_needs_documents(tmp_path: Path) -> None:
    write_exam(tmp_path)
    for bank in ({}, {"generate": {}}):
        with pytest.raises(InputError, match="'data' has no documents to grade"):
            graded(exam_config(tmp_path, texts="documents", **bank))
