"""Lists that stand in one cell, as other programs print them."""

from __future__ import annotations

import contextlib
import json
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_eval.data.rows import list_in

TEXTS = st.lists(st.text(st.characters(exclude_characters="\0"), max_size=12), min_size=1, max_size=5)
DOCUMENT = "Document(metadata={'source': 'a.pdf', 'at': datetime.datetime(2024, 1, 2)}, page_content=\"It's open\")"
NODE = (
    "[NodeWithScore(node=TextNode(id_='1', embedding=None, metadata={}, relationships={<NodeRelationship.SOURCE: '1'>: "
    "RelatedNodeInfo(node_id='x', node_type=<ObjectType.DOCUMENT: '4'>)}, text='Open'), score=0.8)]"
)


@given(TEXTS)
def test_whatever_python_numpy_and_json_print_is_read_back(texts: list[str]) -> None:
    array = np.array(texts, dtype=object)
    with np.printoptions(threshold=100):
        forms = [str(texts), repr(tuple(texts)), str(array), repr(array), json.dumps(texts), repr(np.array(texts))]
    forms.append(str([np.str_(text) for text in texts]))
    for form in forms:
        assert list_in(form) == texts, form


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("['a'\n 'b']", ["a", "b"]),
        ("array(['a', 'b'], dtype='<U20')", ["a", "b"]),
        ("array([], dtype=object)", []),
        ("[array(['a'], dtype=object)]", [["a"]]),
        ("array([{'text': 'a'}, {'text': 'b'}], dtype=object)", [{"text": "a"}, {"text": "b"}]),
        ("{'page_content': 'a'}", [{"page_content": "a"}]),
        ("[('a', 0.5)]", [["a", 0.5]]),
        (r"['a\n\'b\' \u00e9 \\d']", ["a\n'b' é \\d"]),
        (
            "[HumanMessage(content='hi', additional_kwargs={})]",
            [{"type": "human", "content": "hi", "additional_kwargs": {}}],
        ),
    ],
)
def test_forms(cell: str, found: list[Any]) -> None:
    assert list_in(cell) == found


def test_documents_of_frameworks() -> None:
    (document, _) = list_in(f"[{DOCUMENT}, {DOCUMENT}]") or []
    assert (document["page_content"], document["metadata"]["source"]) == ("It's open", "a.pdf")
    ((node,),) = [list_in(NODE) or []]
    assert node["node"]["text"] == "Open"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[1] The library opens.",
            "[Music] hello",
            "[deleted]",
            "(a) one, (b) two",
            "[a](http://x), [b](y)",
            "[[1]] says",
        ),
        *('("GDPR") applies', "('tis the season)", "{braces} x", "arrays (1)", "a|b", "", "[", "[x]", "(see below)"),
    ],
)
def test_a_text_that_begins_with_a_bracket_is_a_text(text: str) -> None:
    assert list_in(text) is None


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("['a' 'b' ... 'y' 'z']", "'...' where entries were left out"),
        ("array(['a', ..., 'z'], dtype=object)", "'...' where entries were left out"),
        ("['a', 'b'", "cut off"),
        ("['a', 'b", "cut off"),
        ("[{'text': 'a'}, {'text'", "cut off"),
        ("('a', 'b'", "cut off"),
        ("[Document(page_content='a'), Document(page_con", "put quotes"),
        ("[Fee is 5, students half]", "put quotes"),
        ("['a'] and ['b']", "goes on after its end"),
        ("['a', 'b' 'c']", "commas between some"),
        ("[__import__('os').system('true'), 'a']", "cannot be read"),
    ],
)
def test_what_begins_like_a_list_and_is_none_is_refused(cell: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list_in(cell)


LONG = [
    *("[" * 10**6, "['" + "a" * 10**7 + "' 'b']", "[" + "'' " * 10**6 + "]", "['" + "\\" * 10**6, "<" * 10**6),
    *(
        "[<" + "a" * 10**6,
        "[" + "<'" * 10**6,
        "[" + " " * 10**6,
        "[x" * 10**6,
        "[" + "a(" * 10**6,
        "(" + "'a' " * 10**6,
    ),
    *(
        "[a(b=" * 10**6,
        "[{'a':" * 10**6,
        "[" + "a." * 10**6,
        "[" + "9" * 10**6,
        "[-" + "1_" * 10**6,
        "('" + "a" * 10**6,
    ),
]


@pytest.mark.parametrize("cell", LONG, ids=range(len(LONG)))
def test_no_cell_takes_long(cell: str) -> None:
    start = time.process_time()
    with suppress(ValueError):
        list_in(cell)
    assert time.process_time() - start < 3


@given(st.text(alphabet="[](){}'\",: ab\\n.<>=0", max_size=40))
def test_no_cell_breaks_the_reader(cell: str) -> None:
    with contextlib.suppress(ValueError):
        found = list_in(cell)
        assert found is None or isinstance(found, list)
