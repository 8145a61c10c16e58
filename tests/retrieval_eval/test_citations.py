"""Citation precision: what an answer cites, however it is written, and the share of it that is relevant."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.data.files import read_answers
from judges.types import Answer
from retrieval_eval.scores.citations import Cited, citation_scores, cited_documents

RANKING = ["d1", "d2", "d3"]
LABELS = {"q": {"d1": 2, "d2": 0, "far#0_7": 1}}


def cited(text: str, agent: str = "x", **metadata: str) -> Cited:
    answer = Answer("q", agent, text, metadata)
    return cited_documents([answer], {("q", agent): RANKING}, LABELS)["q", agent]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats purr [1]. They do [2, 1] and [3].", Cited(("d1", "d2", "d3"))),
        ("Cats purr [d2][far#0_7].", Cited(("d2", "far#0_7"))),
        ("Cats purr [1; 9].", Cited(("d1",), unresolved=1)),
        ("Counting from zero [0], so [2] is the third.", Cited(("d1", "d3"))),
        ("Counting from one: [0] stands for nothing, [3] for the third.", Cited(("d3",))),
        ("A list `a[1]`:\n```\nb[2]\n```\nCats purr [3].", Cited(("d3",))),
        ("Cats purr [1].\n\n## References\n1. [1] A book\n2. [2] A page", Cited(("d1",))),
        ("Cats purr.\n\n## References\n[1] A book\n[3] A page", Cited(("d1", "d3"))),
        ("An aside [sic], a year [2019] and [see below].", Cited((), unresolved=1)),
        ("Nothing at all.", Cited(())),
        ("[\n1] is no citation, nor is [] or [[", Cited(())),
    ],
)
def test_citations_in_square_brackets_are_places_or_ids(text: str, expected: Cited) -> None:
    assert cited(text) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ('["d3", "elsewhere"]', Cited(("d3", "elsewhere"), unresolved=1)),
        ("[3, 1, 4]", Cited(("d3", "d1"), unresolved=1)),
        ("[]", Cited((), unresolved=1)),
        ("2", Cited(("d1",), unresolved=1)),  # a column of that name that counts them
        ('[{"id": "d3"}]', Cited(("d1",), unresolved=1)),
        pytest.param("[" * 100_000, Cited(("d1",), unresolved=1), id="too deep"),
    ],
)
def test_what_an_answer_says_itself_that_it_cites_goes_before_its_text(told: str, expected: Cited) -> None:
    assert cited("Cats purr [1; 9].", citations=told) == expected


@pytest.mark.parametrize("sentences", ["three of them", "[3]", '[{"citations": 2}]', '["one"]', "{}x", "[" * 100_000])
def test_columns_that_only_have_the_names_of_trec_s_say_nothing(sentences: str) -> None:
    assert cited("Cats purr [2].", sentences=sentences, references='["d9"]') == Cited(("d2",))
    assert cited("Cats purr [2].", sentences="[]", references="the second one") == Cited(("d2",))


def counted(*texts: str) -> list[tuple[str, ...]]:
    """What one agent's answers cite, where each has the documents d1, d2 and d3."""
    answers = [Answer(f"q{at}", "x", text) for at, text in enumerate(texts)]
    found = cited_documents(answers, {(own.query_id, "x"): RANKING for own in answers}, {})
    return [own.doc_ids for own in found.values()]


def test_an_agent_counts_from_zero_only_if_its_answers_say_so_together() -> None:
    assert counted("Yes [0].", "Yes [1].", "No [0] and [2].") == [("d1",), ("d2",), ("d1", "d3")]
    assert counted("Yes [1].", "Yes [0].", "No [2].") == [("d1",), (), ("d2",)]  # one slip among three
    assert counted("Yes [0].", "Yes [0].", "No [3].") == [(), (), ("d3",)]  # from zero, 3 would stand for nothing
    assert counted("Yes [0].") == [("d1",)]


@given(st.lists(st.sampled_from(["Yes [1].", "No [2, 3].", "So [1] and [2]."]), min_size=2, max_size=8))
def test_a_zero_in_one_answer_leaves_the_citations_of_the_others_alone(texts: list[str]) -> None:
    assert counted(*texts, "The first is a[0].")[:-1] == counted(*texts)


def test_agents_count_by_themselves() -> None:
    answers = [Answer("q", "x", "Yes [1] and [0]."), Answer("q", "y", "Yes [1].")]
    found = cited_documents(answers, {("q", agent): RANKING for agent in "xy"}, {})
    assert (found["q", "x"].doc_ids, found["q", "y"].doc_ids) == (("d2", "d1"), ("d1",))


def test_the_recorded_writers_of_crowdrag_count_from_zero(shared: Path) -> None:
    folder = shared / "data" / "crowdrag25"
    rankings: dict[str, list[str]] = {}
    for line in (folder / "retrieved.run").read_text().splitlines():
        query_id, _, doc_id, *_ = line.split()
        rankings.setdefault(query_id, []).append(doc_id)
    lines = gzip.decompress((folder / "answers.jsonl.gz").read_bytes()).splitlines()
    answers = [Answer(row["qid"], row["agent"], row["answer"]) for row in map(json.loads, lines)]
    found = cited_documents(answers, {(own.query_id, own.agent): rankings[own.query_id] for own in answers}, {})
    for own in answers:
        if "[0]" in own.text:
            assert rankings[own.query_id][0] in found[own.query_id, own.agent].doc_ids


@pytest.mark.parametrize("citations", [[0, 2, 0], ["d1", "d3"], [0, "d3"]])
def test_answers_of_the_trec_rag_track_cite_places_from_zero_or_ids(tmp_path: Path, citations: list[object]) -> None:
    record = {
        "run_id": "x",
        "topic_id": "q",
        "topic": "?",
        "references": RANKING,
        "answer": [{"text": "Yes [1].", "citations": citations}, {"text": "No."}],
    }
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(record) + "\n")
    assert cited_documents([answer for _, answer in read_answers(path)], {}, {})["q", "x"].doc_ids == ("d1", "d3")


def test_precision_is_a_mean_over_queries_that_cite_something_labelled_and_the_rest_is_counted() -> None:
    found = {
        ("1", "x"): Cited(("a", "b")),  # one of two relevant
        ("2", "x"): Cited(("a", "unlabelled")),  # the only label says relevant
        ("3", "x"): Cited(("unlabelled",)),
        ("4", "x"): Cited((), unresolved=2),
    }
    labels = {query: {"a": 1, "b": 0} for query in "1234"}
    own = citation_scores(found, labels)["x"]
    assert own.precision.value == pytest.approx((0.5 + 1) / 2)
    assert own.precision.low is not None
    assert (own.queries, own.uncited, own.unlabelled) == (2, 1, 1)
    assert (own.cited, own.labelled, own.relevant, own.unresolved) == (5, 3, 2, 2)
    assert own.coverage == pytest.approx(3 / 5)
    assert citation_scores(found, labels, relevant=2)["x"].precision.value == 0


def test_an_agent_that_cites_nothing_has_no_precision_rather_than_zero() -> None:
    own = citation_scores({("1", "x"): Cited(())}, {"1": {"a": 1}})["x"]
    assert (own.precision.value, own.precision.low, own.coverage, own.uncited) == (None, None, None, 1)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("1234"), st.sampled_from("xyz")),
        st.lists(st.sampled_from("abcd"), unique=True).map(lambda ids: Cited(tuple(ids))),
        min_size=1,
    ),
    st.dictionaries(st.sampled_from("1234"), st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))),
)
def test_every_answer_is_counted_once_and_shares_are_shares(
    found: dict[tuple[str, str], Cited], labels: dict[str, dict[str, int]]
) -> None:
    for agent, own in citation_scores(found, labels).items():
        assert own.queries + own.uncited + own.unlabelled == sum(name == agent for _, name in found)
        assert own.relevant <= own.labelled <= own.cited
        assert (own.precision.value is None) is (own.queries == 0)
        assert own.precision.value is None or 0 <= own.precision.value <= 1
