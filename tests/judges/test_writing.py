# ruff: noqa: RUF001 - other scripts are meant
from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.writing import count_words, estimated_tokens, search_terms, token_spans, word_spans, words_of

THAI = "ห้องสมุดเปิดเวลาเก้าโมงเช้า"
KHMER = "បណ្ណាល័យបើកម៉ោង៩។"
LAO = "ຫ້ອງສະໝຸດເປີດ"
BURMESE = "စာကြည့်တိုက်ဖွင့်သည်။"
CHINESE = "图书馆由镇政府管理，学生可以免费借书。"
JAPANESE = "図書館は町が管理し、ラーメンは食べられません。"


@pytest.mark.parametrize("text", [THAI, KHMER, LAO, BURMESE, CHINESE, JAPANESE])
def test_where_no_blanks_are_characters_count_with_their_marks(text: str) -> None:
    letters = sum(unicodedata.category(each)[0] in "LN" for each in text)
    assert letters / 2.5 < count_words(text) <= letters
    assert count_words(text * 40) == 40 * count_words(text)
    pieces = [text[start:end] for start, end in word_spans(text)]
    assert "".join(pieces) == text
    for piece in pieces:
        assert unicodedata.category(piece[0])[0] != "M", "a mark was torn from its character"


def test_words_between_blanks_are_words() -> None:
    assert count_words("도서관은 아홉 시에 엽니다.") == 4
    assert count_words("Straße, naïve — “quoted”") == 4
    assert count_words("हिन्दी में लिखा है।") == 4
    assert count_words("") == count_words(" \n ") == 0
    assert count_words("GPT-4は日本語 OK") == 1 + 4 + 1
    assert words_of("हिन्दी में") == ["हिन्दी", "में"], "vowel signs belong to the word"


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=80))
def test_texts_of_latin_letters_are_counted_as_before(text: str) -> None:
    assert count_words(text) == len(text.split())


@given(st.text(max_size=60))
def test_no_text_is_lost_between_units(text: str) -> None:
    for spans in (word_spans(text), token_spans(text)):
        assert all(start < end for start, end in spans)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
    words = "".join(text[start:end] for start, end in word_spans(text))
    assert words == "".join(text.split())


def test_searching_goes_by_pairs() -> None:
    assert "图书" in search_terms(CHINESE)
    assert "管" in search_terms(CHINESE)
    assert "ラー" in search_terms(JAPANESE)
    assert set(search_terms("도서관에서")) & set(search_terms("도서관은")) >= {"도서", "서관"}
    assert set(search_terms("สมุด")) <= set(search_terms(THAI)) | {"สมุ", "มุด"}
    assert search_terms("茶") == ["茶"]


def test_one_word_in_two_codings_is_one_word() -> None:
    for word in ("Où", "한국", "がっこう", "น้ำ", "ＡＢＣ", "ﾊﾝｶｸ"):
        forms = {tuple(search_terms(unicodedata.normalize(form, word))) for form in ("NFC", "NFD", "NFKC", "NFKD")}
        assert len(forms) == 1, word


def test_tokens_are_estimated_by_the_script() -> None:
    """Between the vocabularies of cl100k, o200k and DeepSeek, which have 0.95, 1.31 and 1.63 characters a token."""
    chinese = CHINESE * 100
    assert 0.9 < len(chinese) / estimated_tokens(chinese) < 1.7
    assert estimated_tokens("four" * 25) == 25
    russian = "Библиотека открыта с девяти до пяти. " * 10
    assert 2 < len(russian) / estimated_tokens(russian) < 3.6
    assert estimated_tokens("") == 0
    assert estimated_tokens("\ud800") > 0


@pytest.mark.parametrize(
    "text", [CHINESE * 20_000, "（" * 200_000, "図" + "「" * 200_000, "่" * 200_000, "a" * 400_000 + "图"]
)
def test_long_texts_take_no_long_time(text: str) -> None:
    start = time.process_time()
    for measure in (count_words, word_spans, token_spans, words_of, search_terms, estimated_tokens):
        measure(text)
    assert time.process_time() - start < 8
