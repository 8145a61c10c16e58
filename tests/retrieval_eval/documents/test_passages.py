"""Documents cut into passages: nothing is lost, ids last, pages are known, near-duplicates are found."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from judges.writing import cut, token_spans, word_spans
from retrieval_eval.documents.passages import NearDuplicates, PassagesSection, Twin, passages_of, sentences
from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import DocumentPart, SourceDocument

GUIDE = SourceDocument(
    "sub folder/guide.md",
    "Guide",
    (
        DocumentPart("", None, ("Welcome.",)),
        DocumentPart("Set up", None, ("One.", "Two. Three.")),
        DocumentPart("Set-up!", None, ("Four.",)),
    ),
)
BOOK = SourceDocument(
    "book.pdf", "Book", tuple(DocumentPart("", page, (f"Page {page} begins.", "It ends.")) for page in (1, 2, 4))
)


def passages(document: SourceDocument, by: str, **how: Any) -> dict[str, str]:
    found = list(passages_of(document, PassagesSection.model_validate({"by": by, **how})))
    named = {passage.doc_id: passage.text for passage in found}
    assert len(named) == len(found)
    return named


def test_paragraphs_are_counted_within_their_section_or_page() -> None:
    assert passages(GUIDE, "paragraph") == {
        "sub%20folder/guide.md#1": "Welcome.",
        "sub%20folder/guide.md#set-up-1": "One.",
        "sub%20folder/guide.md#set-up-2": "Two. Three.",
        "sub%20folder/guide.md#set-up-3": "Four.",
    }
    assert list(passages(BOOK, "paragraph"))[2:] == ["book.pdf#p2-1", "book.pdf#p2-2", "book.pdf#p4-1", "book.pdf#p4-2"]


def test_a_long_paragraph_is_cut_behind_a_sentence() -> None:
    document = SourceDocument("a.txt", "a", (DocumentPart("", None, ("One two. Three four. Five",)),))
    assert passages(document, "paragraph", size=4) == {"a.txt#1": "One two. Three four.", "a.txt#2": "Five"}


def test_windows_of_sentences_overlap_and_reach_the_end() -> None:
    said = [f"Sentence {number}." for number in range(1, 23)]
    document = SourceDocument("a.txt", "a", (DocumentPart("", None, (" ".join(said[:8]), " ".join(said[8:]))),))
    found = passages(document, "sentences")
    assert list(found) == ["a.txt#s1-10", "a.txt#s6-15", "a.txt#s11-20", "a.txt#s16-22"]
    assert found["a.txt#s16-22"] == " ".join(said[15:])
    assert found["a.txt#s1-10"].replace("\n\n", " ") == " ".join(said[:10])
    assert list(passages(document, "sentences", size=11, overlap=0)) == ["a.txt#s1-11", "a.txt#s12-22"]


def test_windows_of_tokens_share_what_was_asked() -> None:
    document = SourceDocument("a.txt", "a", (DocumentPart("", None, ("a b c d e f g h",)),))
    assert list(passages(document, "tokens", size=4, overlap=1).values()) == ["a b c d", "d e f g", "g h"]


def test_long_passages_hold_whole_paragraphs_with_their_headings() -> None:
    assert passages(GUIDE, "pages", size=7) == {
        "sub%20folder/guide.md#l1": "Welcome.\n\nSet up\n\nOne.",
        "sub%20folder/guide.md#l2": "Two. Three.",
        "sub%20folder/guide.md#l3": "Set-up!\n\nFour.",
    }


def test_long_passages_reach_over_no_more_pages_than_asked() -> None:
    how = PassagesSection(by="pages", pages=2)
    assert [passage.metadata.get("page") for passage in passages_of(BOOK, how)] == ["1-2", "4"]
    assert [passage.metadata["page"] for passage in passages_of(BOOK, PassagesSection(by="pages"))] == ["1-4"]


def test_a_passage_knows_its_document_and_its_section() -> None:
    first, *_, last = passages_of(GUIDE, PassagesSection(by="paragraph"))
    assert first.metadata == {"title": "Guide", "source": "sub folder/guide.md"}
    assert last.metadata == {"title": "Guide: Set-up!", "source": "sub folder/guide.md"}
    (whole,) = passages_of(GUIDE, PassagesSection(by="tokens"))
    assert whole.metadata["title"] == "Guide"


@pytest.mark.parametrize("by", ["paragraph", "tokens", "sentences", "pages"])
def test_ids_stay_when_another_file_is_added(tmp_path: Path, by: str) -> None:
    def ids() -> set[str]:
        how = PassagesSection.model_validate({"by": by})
        return {
            passage.doc_id
            for document in read_documents([tmp_path])
            if isinstance(document, SourceDocument)
            for passage in passages_of(document, how)
        }

    (tmp_path / "b.md").write_text("# B\n\nText one.\n\n## Part\n\nText two.\n")
    before = ids()
    for name in ("a.md", "b.txt", "c.md"):
        (tmp_path / name).write_text("# B\n\nOther text.\n")
    assert before < ids()


def test_settings_that_do_not_go_together_are_refused() -> None:
    for how, said in (
        ({"by": "paragraph", "overlap": 1}, "'overlap' goes with 'tokens' and 'sentences' only"),
        ({"by": "tokens", "size": 5, "overlap": 5}, "'overlap' must be less than 'size'"),
        ({"by": "tokens", "pages": 3}, "'pages' goes with passages by 'pages' only"),
        ({"by": "words"}, "Input should be"),
    ):
        with pytest.raises(ValidationError, match=said):
            PassagesSection.model_validate(how)
    assert PassagesSection(by="sentences", size=3).most_shared == 1


def test_tokens_are_words_of_eight_letters_single_characters_of_cjk_and_marks() -> None:
    text = "Information, 3.5 µm: 東京タ ok"
    assert [text[start:end] for start, end in token_spans(text)] == [
        *("Informat", "ion", ",", "3", ".", "5", "µm", ":"),
        *("東", "京", "タ", "ok"),
    ]


@given(st.text(alphabet="ab. \n", max_size=200), st.integers(1, 9), st.integers(0, 8))
def test_cutting_loses_nothing_keeps_the_size_and_shares_what_was_asked(text: str, most: int, shared: int) -> None:
    overlap = min(shared, most - 1)
    units = word_spans(text)
    spans = list(cut(text, units, most, overlap))
    held = [[unit for unit in units if start <= unit[0] and unit[1] <= end] for start, end in spans]
    assert all(1 <= len(own) <= most for own in held)
    assert sorted({unit for own in held for unit in own}) == units
    for before, after in pairwise(held):
        assert len(set(before) & set(after)) == overlap
        assert after[-1] > before[-1]


TEXTS = st.lists(st.sampled_from(["One.", "Two three.", "Unquestionably", "so", "it is"]), min_size=1, max_size=12)
PARTS = st.lists(st.lists(TEXTS.map(" ".join), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4)


@settings(deadline=None)
@given(PARTS, st.sampled_from(["paragraph", "tokens", "sentences", "pages"]), st.integers(2, 40))
def test_every_word_of_a_document_is_in_some_passage(parts: list[tuple[str, ...]], by: str, size: int) -> None:
    numbered = (DocumentPart("", page, texts) for page, texts in enumerate(parts, start=1))
    document = SourceDocument("a.pdf", "A", tuple(numbered))
    found = list(passages_of(document, PassagesSection.model_validate({"by": by, "size": size, **NO_OVERLAP[by]})))
    assert len({passage.doc_id for passage in found}) == len(found)
    said = [word for texts in parts for text in texts for word in text.split()]
    assert [word for passage in found for word in passage.text.split()] == said


NO_OVERLAP: dict[str, dict[str, int]] = {
    "sentences": {"overlap": 0},
    "tokens": {"overlap": 0},
    "paragraph": {},
    "pages": {},
}


LONG = " ".join(f"word{number}" for number in range(100))


def twins(texts: list[str], threshold: float, shingle: int = 5, *, same_numbers: bool = False) -> list[Twin]:
    alike = NearDuplicates(threshold, shingle, same_numbers=same_numbers)
    found = (alike.twin(str(place), text) for place, text in enumerate(texts))
    return [twin for twin in found if twin is not None]


def test_a_text_that_differs_in_a_word_is_a_twin_of_the_first() -> None:
    (twin,) = twins([LONG, "something else", LONG.replace("word99", "other")], 0.8)
    assert (twin.ident, twin.kept) == ("2", "0")
    assert twin.similarity == 95 / 97  # 96 shingles of five words each, of which the last one differs


def test_case_and_punctuation_make_no_difference() -> None:
    assert twins(["Ask, and wait for it to end!", "ask and WAIT for it: to end"], 1.0) == [Twin("1", "0", 1.0)]


def test_texts_below_the_threshold_are_kept() -> None:
    half = " ".join(LONG.split()[:50])
    assert twins([LONG, half], 0.6) == []
    (twin,) = twins([LONG, half], 0.4)
    assert twin.similarity == 46 / 96


def test_short_texts_are_compared_whole_and_empty_ones_not_at_all() -> None:
    assert twins(["two words", "two words", "two", "", "?!", ""], 0.9) == [Twin("1", "0", 1.0)]


def test_numbers_may_tell_texts_apart() -> None:
    questions = [f"Which package does the current sensor {name} come in?" for name in ("TLE4971", "TLE4972", "tle4971")]
    assert [twin.ident for twin in twins(questions, 0.7, 1)] == ["1", "2"]
    assert [twin.ident for twin in twins(questions, 0.7, 1, same_numbers=True)] == ["2"]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(alphabet="ab ", max_size=12), max_size=12), st.sampled_from([0.5, 0.8, 1.0]))
def test_what_is_reported_is_as_alike_as_asked_and_no_kept_text_repeats_another(
    texts: list[str], threshold: float
) -> None:
    found = twins(texts, threshold, 1)
    assert all(twin.similarity >= threshold and int(twin.kept) < int(twin.ident) for twin in found)
    kept = [text.split() for place, text in enumerate(texts) if str(place) not in {twin.ident for twin in found}]
    distinct = [frozenset(text) for text in kept if text]
    assert len(distinct) == len(set(distinct))


def test_texts_without_blanks_are_cut_behind_sentences() -> None:
    text = "图书馆由镇政府管理。开放时间为周一至周五！学生可以借书吗？" * 20
    document = SourceDocument("a.txt", "A", (DocumentPart("", None, (text,)),))
    passages = list(passages_of(document, PassagesSection(by="paragraph", size=40)))
    assert "".join(passage.text for passage in passages) == text
    assert all(passage.text[-1] in "。！？" and len(passage.text) <= 45 for passage in passages)
    assert sentences(text)[:3] == ["图书馆由镇政府管理。", "开放时间为周一至周五！", "学生可以借书吗？"]
    assert sentences("「はい。」と言った。次。") == ["「はい。」", "と言った。", "次。"]


def test_near_twins_of_texts_without_blanks_are_found() -> None:
    text = "图书馆由镇政府管理，开放时间为周一至周五上午九点到下午五点，学生可以免费借书，每次最多五本，期限为三周。"
    assert [twin.ident for twin in twins([text, text.replace("三", "四"), "猫会发出咕噜声。"], 0.7)] == ["1"]
