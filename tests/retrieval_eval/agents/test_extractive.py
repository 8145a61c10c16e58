"""Generators that pick sentences."""

from judges.types import Document
from retrieval_eval.agents.rag import ExtractiveGenerator, lead
from retrieval_eval.agents.ranking import InverseDocumentFrequency

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
