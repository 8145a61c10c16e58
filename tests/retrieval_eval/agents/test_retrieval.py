"""Retrieval by hand and on Cranfield, and words and sentences as the offline agents see them."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from docs.make_demo import find_by_overlap, lead
from judges.errors import InputError
from judges.types import Document, Query
from retrieval_eval.agents.rag import ExtractiveGenerator, RagAgent, offline
from retrieval_eval.agents.ranking import (
    Bm25Index,
    Corpus,
    Hit,
    InverseDocumentFrequency,
    reciprocal_rank_fusion,
    terms,
)
from retrieval_eval.agents.retrieval import Offline
from retrieval_eval.agents.types import AgentFailure, AgentReply
from retrieval_eval.documents.passages import sentences

TEXTS = {"a": "elo elo rating", "b": "rating order order order", "c": "nugget"}
DOCUMENTS = [Document(doc_id, text) for doc_id, text in TEXTS.items()]


def test_scores_follow_the_formula() -> None:
    (hit,) = Bm25Index(DOCUMENTS).find("Elo", 5)
    frequency, length, mean_length, k1, b = 2, 3, 8 / 3, 1.2, 0.75
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * frequency / (frequency + k1 * (1 - b + b * length / mean_length))
    assert hit.document.doc_id == "a"
    assert hit.score == pytest.approx(expected, abs=1e-6)


def test_scores_of_repeated_terms_add_up() -> None:
    index = Bm25Index(DOCUMENTS)
    elo, rating = (index.find(term, 1)[0].score for term in ("elo", "rate"))
    mixed = {hit.document.doc_id: hit.score for hit in index.find("elo elo rate", 3)}
    assert mixed["a"] == pytest.approx(2 * elo + rating, abs=1e-5)


def test_documents_without_a_query_term_are_not_found() -> None:
    index = Bm25Index(DOCUMENTS)
    assert [hit.document.doc_id for hit in index.find("rating", 9)] == ["a", "b"]
    assert index.find("of the unseen", 9) == []
    assert index.expanded("of the unseen", 9) == []


@pytest.mark.parametrize("order", [("x", "y", "z"), ("z", "y", "x")])
def test_equal_scores_are_ranked_by_id(order: tuple[str, ...]) -> None:
    documents = [Document(doc_id, "same words") for doc_id in order]
    for find in (Bm25Index(documents).find, partial(find_by_overlap, documents)):
        assert [hit.document.doc_id for hit in find("words", 2)] == ["x", "y"]


def test_titles_are_searched() -> None:
    documents = [*DOCUMENTS, Document("d", "nothing here", {"title": "Kappa"})]
    assert Bm25Index(documents).find("kappa", 1)[0].document.doc_id == "d"


@pytest.mark.parametrize("documents", [[], [Document("a", "the of"), Document("b", "")]])
def test_an_index_without_words_is_refused(documents: list[Document]) -> None:
    with pytest.raises(InputError, match="no text to search"):
        Bm25Index(documents)


def test_a_corpus_refuses_one_id_twice() -> None:
    with pytest.raises(InputError, match="two documents of the corpus have the id 'a'"):
        Corpus.of([Document("a", "one"), Document("a", "two")])


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    Bm25Index(DOCUMENTS).find("elo rating", 2)
    assert capfd.readouterr() == ("", "")


def test_further_queries_add_the_ten_most_frequent_terms_of_a_document() -> None:
    text = "elo kappa kappa rho rho nugget judge verdict rating bank grade query item answer"
    index = Bm25Index([Document("1", text), Document("2", "order")])
    assert index.expanded("Order", 1) == ["Order"]
    assert index.expanded("elo", 2) == ["elo answer bank grade item judg kappa nugget queri rho"]  # no rate, no verdict


async def test_an_agent_reports_what_it_retrieved_and_answered() -> None:
    retriever, generator = Offline(Bm25Index(DOCUMENTS).find), offline(lead)
    reply = await RagAgent("bm25-2", retriever, generator, depth=2, passages=1).reply(Query("q1", "elo rating"))
    assert isinstance(reply, AgentReply)
    assert (reply.answer, reply.citations) == (TEXTS["a"], ("a",))
    assert [(found.doc_id, found.rank, found.text) for found in reply.documents] == [
        ("a", 1, TEXTS["a"]),
        ("b", 2, TEXTS["b"]),
    ]
    scores = [found.score or 0 for found in reply.documents]
    assert scores[0] > scores[1] > 0
    assert (reply.calls, reply.cost_usd) == (0, 0.0)
    assert reply.latency_s is not None
    assert reply.latency_s > 0


async def test_an_agent_that_finds_nothing_gives_no_answer() -> None:
    agent = RagAgent("x", Offline(partial(find_by_overlap, DOCUMENTS)), offline(lead), depth=1, passages=1)
    reply = await agent.reply(Query("q1", "unseen"))
    assert isinstance(reply, AgentFailure)
    assert reply.cause == "empty"


class Cranfield(Struct, frozen=True):
    """The collection: its folder, and an index of its documents."""

    folder: Path
    index: Bm25Index


def by_hand(rankings: list[list[str]], k: int) -> dict[str, float]:
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for place, doc_id in enumerate(ranking):
            scores[doc_id] += 1 / (k + place + 1)
    return scores


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=5), st.integers(1, 100))
def test_fusion_is_the_sum_of_reciprocal_ranks_best_first(rankings: list[list[str]], k: int) -> None:
    hits = [[Hit(Document(doc_id, ""), -float(place)) for place, doc_id in enumerate(ranking)] for ranking in rankings]
    merged = reciprocal_rank_fusion(hits, k)
    assert {hit.document.doc_id: hit.score for hit in merged} == pytest.approx(by_hand(rankings, k))
    assert merged == sorted(merged, key=lambda hit: (-hit.score, hit.document.doc_id))
    assert reciprocal_rank_fusion(hits[::-1], k) == merged


def test_terms_are_stems_without_function_words() -> None:
    assert terms("How do the Judges judge both of the labels?") == ["judg", "judg", "label"]


def test_sentences_end_at_full_stops_and_line_breaks() -> None:
    text = 'One ends here. Two asks "why?" Three (as Elo (1978) says) ends! first item\nsecond item'
    assert sentences(text) == [
        "One ends here.",
        'Two asks "why?"',
        "Three (as Elo (1978) says) ends! first item",
        "second item",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Zheng et al. (2023) report it.",
        "The value is 0.75, e.g. 3 of 4, i.e. Most.",
        "W. Kish wrote about samples, cf. Chapter 5.",
        "Cohen's kappa (Cohen 1960) is 0.37.",
    ],
)
def test_abbreviations_and_numbers_do_not_end_a_sentence(sentence: str) -> None:
    assert sentences(f"{sentence} And the next.") == [sentence, "And the next."]


@given(st.text(alphabet="aB1.!? \n()\"'"))
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_rare_terms_weigh_more_and_unknown_terms_most() -> None:
    idf = InverseDocumentFrequency([Document("1", "elo rating"), Document("2", "elo order"), Document("3", "elo")])
    assert idf("elo") == pytest.approx(math.log(1 + 0.5 / 3.5))
    assert 0 < idf("elo") < idf("rate") < idf("absent")
    assert idf.total(["elo", "elo", "rate"]) == pytest.approx(idf("elo") + idf("rate"))


KAPPA = Document("1", "People disagree. Kappa corrects agreement for chance. It is often low.", {"title": "Kappa"})
AGAIN = Document("2", "Kappa corrects agreement for chance. Alpha copes with missing labels.", {"title": "Alpha"})
OTHER = Document("3", "Elo depends on the order of the games.", {"title": "Elo"})
IDF = InverseDocumentFrequency([KAPPA, AGAIN, OTHER])


def test_the_sentence_with_the_questions_terms_is_picked() -> None:
    answer = ExtractiveGenerator(IDF, max_sentences=1).generate("What does kappa correct?", [KAPPA, OTHER]).text
    assert answer == "Kappa corrects agreement for chance."


def test_nothing_is_said_twice() -> None:
    answer = (
        ExtractiveGenerator(IDF, max_sentences=2).generate("Do kappa and alpha cope with chance?", [KAPPA, AGAIN]).text
    )
    assert answer == "Kappa corrects agreement for chance. Alpha copes with missing labels."


def test_sentences_stand_in_reading_order() -> None:
    answer = ExtractiveGenerator(IDF, max_sentences=2).generate("missing labels, kappa?", [KAPPA, AGAIN]).text
    assert answer == "Kappa corrects agreement for chance. Alpha copes with missing labels."
    turned = ExtractiveGenerator(IDF, max_sentences=2).generate("missing labels, kappa?", [AGAIN, KAPPA]).text
    assert turned.startswith("Kappa corrects agreement for chance. Alpha copes")


def test_unrelated_sentences_are_left_out() -> None:
    answer = ExtractiveGenerator(IDF, max_sentences=9).generate("order of games", [OTHER, KAPPA]).text
    assert answer == OTHER.text


def test_a_question_of_function_words_is_answered_with_the_first_sentences() -> None:
    assert ExtractiveGenerator(IDF, max_sentences=1).generate("what is it?", [KAPPA]).text == "People disagree."


def test_without_passages_there_is_no_answer() -> None:
    assert lead("kappa?", []).text == ExtractiveGenerator(IDF).generate("kappa?", []).text == ""


CORPORA = {
    "Chinese": ("图书馆周一至周五开放。", "猫在平静时会发出咕噜声。", "猫为什么发出咕噜声？"),
    "Japanese": ("図書館は平日に開いています。", "猫は落ち着くと喉を鳴らす。", "なぜ猫は喉を鳴らすのですか"),
    "Korean": ("도서관은 평일에 문을 엽니다.", "고양이는 편안할 때 가르랑거립니다.", "고양이가 왜 가르랑거리나요?"),
    "Thai": ("ห้องสมุดเปิดวันจันทร์ถึงวันศุกร์", "แมวร้องครางเมื่อสงบ", "ทำไมแมวจึงร้องคราง"),
    "Lao": ("ຫ້ອງສະໝຸດເປີດວັນຈັນ", "ແມວຮ້ອງຄາງເມື່ອສະຫງົບ", "ເປັນຫຍັງແມວຈຶ່ງຮ້ອງຄາງ"),
    "Khmer": ("បណ្ណាល័យបើកនៅថ្ងៃច័ន្ទ", "ឆ្មាធ្វើសំឡេងនៅពេលស្ងប់", "ហេតុអ្វីឆ្មាធ្វើសំឡេង"),
    "Burmese": ("စာကြည့်တိုက်သည်တနင်္လာနေ့ဖွင့်သည်", "ကြောင်သည်ငြိမ်သောအခါအသံပြုသည်", "ကြောင်ဘာကြောင့်အသံပြုသလဲ"),
    "Hindi": ("पुस्तकालय सोमवार को खुलता है।", "बिल्ली शांत होने पर घुरघुराती है।", "बिल्ली क्यों घुरघुराती है?"),
}


@pytest.mark.parametrize("language", CORPORA)
def test_bm25_finds_words_of_every_script(language: str) -> None:
    other, right, question = CORPORA[language]
    index = Bm25Index([Document("other", other), Document("right", right)])
    hits = index.find(question, 2)
    assert hits[0].document.doc_id == "right"
    assert len(hits) == 1 or hits[0].score > 2 * hits[1].score
