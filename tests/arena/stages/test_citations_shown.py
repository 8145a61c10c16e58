"""Judges who check citations see them by the numbers of the documents in their prompt, whatever each agent counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.config.schema import Config
from arena.data.dataset import Dataset
from judges.types import Answer, Document, Query, Retrieved, Task
from retrieval_eval.scores.citations import cited_documents
from tests.support.llm_server import LLMServer, Reply
from tests.support.tournaments import configured, results, run, write_data

DOCUMENTS = [
    *(("q1", name, f"What is q1? The {name} says what q1 is.", "x") for name in ("first", "second", "third")),
    ("q1", "third", "What is q1? The third says what q1 is.", "y"),
    ("q1", "off", "Bananas ripen slowly.", "y"),
    ("q1", "first", "What is q1? The first says what q1 is.", "z"),
]
ANSWERS = {
    ("q1", "x"): "So says one [2], and another [3].",
    ("q1", "y"): "It is the third [1]. Bananas [2]. Nobody knows [7]. Born [1999].",
    ("q1", "z"): "From zero [0].",
}
VERDICT = '{"explanation": "Alike.", "verdict": "TIE"}'


def judged(folder: Path, server: LLMServer, **sections: Any) -> Config:
    write_data(folder, ["q1"], ANSWERS, DOCUMENTS)
    left_out: dict[str, Any] = dict.fromkeys(("retrieval", "criteria", "pairwise"))
    return configured(folder, server.openai_url, **left_out | sections)


def answers_shown(server: LLMServer) -> set[str]:
    shown = (call.body["messages"][-1]["content"] for call in server.calls)
    found = (re.findall(r"<<<answer[^\n]*\n(.*?)\n<<<end", text, re.DOTALL) for text in shown)
    return {answer for answers in found for answer in answers}


def test_games_show_each_answers_citations_by_the_numbers_of_the_documents_shown(tmp_path: Path) -> None:
    pairwise = {"judges": ["judge"], "citations": True, "documents": {"threshold": 1}}
    with LLMServer(lambda _: Reply(VERDICT)) as server:
        run(judged(tmp_path, server, pairwise=pairwise))
        shown = answers_shown(server)
        systems = {call.body["messages"][0]["content"] for call in server.calls}
    # x and y see first, off, second, third; x and z first, second, third; y and z first, off, third.
    assert shown == {
        "So says one [3], and another [4].",
        "It is the third [4]. Bananas [2]. Nobody knows [no such document]. Born [1999].",
        "So says one [2], and another [3].",
        "From zero [1].",
        "It is the third [3]. Bananas [2]. Nobody knows [no such document]. Born [1999].",
    }
    assert all("[no such document]" in text for text in systems)


def test_a_document_below_the_threshold_is_named_as_not_shown(tmp_path: Path) -> None:
    with LLMServer(lambda _: Reply(VERDICT)) as server:
        own = {"provider": "openai", "model": "gpt-x", "base_url": server.openai_url}
        run(
            judged(
                tmp_path,
                server,
                judges={"judge": own, "words": {"provider": "lexical"}},
                retrieval={"judge": "words"},
                pairwise={"judges": ["judge"], "citations": True, "documents": {"threshold": 1}},
            )
        )
        shown = answers_shown(server)
    assert any("Bananas [document not shown]." in answer for answer in shown)
    assert not any("Bananas [2]" in answer for answer in shown)


@pytest.mark.parametrize("pairwise", [{"citations": False}, {"citations": True, "documents": {"include": False}}])
def test_without_citations_or_documents_answers_are_shown_as_they_are(tmp_path: Path, pairwise: dict[str, Any]) -> None:
    with LLMServer(lambda _: Reply(VERDICT)) as server:
        run(judged(tmp_path, server, pairwise={"judges": ["judge"], **pairwise}))
        assert answers_shown(server) == set(ANSWERS.values())


def test_answers_of_one_text_that_cite_different_documents_are_no_tie_for_free(tmp_path: Path) -> None:
    answers = dict.fromkeys(ANSWERS, "It is so [1].")
    with LLMServer(lambda _: Reply(VERDICT)) as server:
        config = judged(tmp_path, server, pairwise={"judges": ["judge"], "citations": True})
        write_data(tmp_path, ["q1"], answers, DOCUMENTS)
        run(config)
        assert len(server.calls) == 4  # x and z have the same first document
        assert len(results(config, Task.PAIRWISE)) == 6


def test_citation_quality_is_graded_by_the_numbers_of_the_agents_documents(tmp_path: Path) -> None:
    grades = '{"explanation": "Yes.", "citation_quality": 2}'
    with LLMServer(lambda _: Reply(grades)) as server:
        run(judged(tmp_path, server, criteria={"judge": "judge", "names": ["citation_quality"]}))
        shown = answers_shown(server)
    assert shown == {
        ANSWERS["q1", "x"],
        "It is the third [1]. Bananas [2]. Nobody knows [no such document]. Born [1999].",
        "From zero [1].",
    }


def dataset(text: str, **metadata: str) -> tuple[Dataset, Answer]:
    answer = Answer("q", "x", text, metadata)
    documents = {name: Document(name, name) for name in "abc"}
    retrieved = {"q": [Retrieved("q", name, "x", rank) for rank, name in enumerate("abc", start=1)]}
    return Dataset({"q": Query("q", "?")}, documents, retrieved=retrieved, answers={("q", "x"): answer}), answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes [1][c]. No [1-3].", "Yes [3][1]. No [3, document not shown, 1]."),
        ("Yes \u30101\u3011, [Document 3: On c], <sup>1</sup>, `x[1]`.", "Yes [3], [1], <sup>1</sup>, `x[1]`."),
        ("Yes [1].\n```\nx[1]\n```\n[^3]: The third", "Yes [3].\n```\nx[1]\n```\n[1]: The third"),
        ("Yes (1). No (3).", "Yes [3]. No [1]."),
        ("Yes [see above] [sic] [4].", "Yes [see above] [sic] [no such document]."),
    ],
)
def test_marks_of_all_kinds_are_renumbered(text: str, expected: str) -> None:
    data, answer = dataset(text)
    assert data.renumbered(answer, ["c", "e", "a"]).text == expected


def test_answers_of_the_trec_rag_track_get_the_marks_that_they_have_as_lists() -> None:
    sentences = '[{"text": "Yes.", "citations": [1, 0]}, {"text": "No."}]'
    data, answer = dataset("Yes. No.", references='["b", "c"]', sentences=sentences)
    assert data.renumbered(answer, ["c", "a"]).text == "Yes. [1, document not shown] No."


@given(st.lists(st.sampled_from(["Yes [1].", "No [2, 3].", "So [b]."]), max_size=5), st.permutations(["a", "b", "c"]))
def test_a_renumbered_answer_cites_the_same_documents(pieces: list[str], shown: list[str]) -> None:
    data, answer = dataset(" ".join(pieces))
    before = cited_documents([answer], data.given, {})["q", "x"]
    after = cited_documents([data.renumbered(answer, shown)], {("q", "x"): shown}, {})["q", "x"]
    assert after == before
