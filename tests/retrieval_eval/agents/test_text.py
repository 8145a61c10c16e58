"""Words and sentences as the offline agents see them, and the sentences that they pick."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.types import Document
from retrieval_eval.agents.rag import ExtractiveGenerator, lead
from retrieval_eval.agents.ranking import InverseDocumentFrequency, terms
from retrieval_eval.documents.passages import sentences


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


def test_lead_takes_the_first_sentences_of_the_best_passage() -> None:
    assert lead("order of games", [KAPPA, OTHER]).text == "People disagree. Kappa corrects agreement for chance."
