"""Support: sentences are held against what they cite, and an agent's score says what it rests on."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from arena.boards.gate.compare import compare
from arena.boards.support import SupportBoard, board
from arena.data.kinds import Annotation, texts_now
from arena.people import tasks
from arena.people.votes import read_table, write_table
from arena.results.games import read_games
from arena.results.opinions import judges_opinions, judgments_of, peoples_opinions
from arena.results.support import results
from arena.run.judging import load_data
from arena.stages.support import KIND, SUPPORT, SupportSubject
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import ConfigError, DataError
from judges.types import Answer
from retrieval_eval.data.tables import write_rows
from retrieval_eval.scores.citations import CitedSentence, cited_sentences
from retrieval_eval.scores.support import AnswerSupport, answer_support, support_scores
from tests.support.llm_server import LLMServer, Reply
from tests.support.tournaments import configured, run, write_data

FULL, PARTIAL, NONE = 2, 1, 0


def of(text: str, ranking: tuple[str, ...] = ("d1", "d2"), **metadata: str) -> tuple[CitedSentence, ...] | None:
    answer = Answer("q", "x", text, metadata)
    return cited_sentences([answer], {("q", "x"): ranking}, {"d1", "d2", "far#0_7"})["q", "x"]


def test_sentences_have_the_citations_that_stand_in_them_or_behind_their_full_stop() -> None:
    text = "Cats purr [1]. They sleep.[2][9] Lions [sic] roared in 2019 [2019]. [far#0_7, 2] Nothing."
    assert of(text) == (
        CitedSentence("Cats purr.", ("d1",)),
        CitedSentence("They sleep.", ("d2", None)),
        CitedSentence("Lions [sic] roared in 2019.", ("far#0_7", "d2")),
        CitedSentence("Nothing.", ()),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats purr [1][2]. They sleep [1, 2].", [("Cats purr.", "d1 d2"), ("They sleep.", "d1 d2")]),
        ("Cats purr [1-2]. They sleep [1\u20133].", [("Cats purr.", "d1 d2"), ("They sleep.", "d1 d2 -")]),
        ("It lived [2019-2023].", [("It lived [2019-2023].", "")]),
        (
            "Cats purr \u30101\u3011. They sleep.\u30102\u2020source\u3011",
            [("Cats purr.", "d1"), ("They sleep.", "d2")],
        ),
        ("\u732b\u7761\u3002[1]\u72ac\u5420\u3002[2]", [("\u732b\u7761\u3002", "d1"), ("\u72ac\u5420\u3002", "d2")]),
        ("Cats purr.[^2] They sleep.\n\n[^2]: A book.\n", [("Cats purr.", "d2"), ("They sleep.", "")]),
        ("Cats purr [Document 1, doc 2].", [("Cats purr.", "d1 d2")]),
        ("Cats purr [1](http://a.b). They sleep ([2]).", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("Cats purr.\n[1]\nThey sleep\n[2]", [("Cats purr.", "d1"), ("They sleep", "d2")]),
        ("[1] Cats purr. [2] They sleep.", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("Cats purr [1].\n\n**References:**\n[1] A book.\n\n[2] A page.", [("Cats purr.", "d1")]),
        ("References help.\n[1] Cats purr.", [("References help.", ""), ("Cats purr.", "d1")]),
        ("Cats purr [8][9][8].", [("Cats purr.", "- -")]),
        ("[1]", []),
        ("Cats purr [#1].", [("Cats purr.", "d1")]),
        (
            "Cats purr [Document 2: On cats, dogs and more]. So [Doc 1: A; Doc 2: B].",
            [("Cats purr.", "d2"), ("So.", "d1 d2")],
        ),
        ("Cats purr [1 2].", [("Cats purr.", "d1 d2")]),
        ("Cats purr<sup>1</sup>. They sleep.<sup>2</sup>", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("Cats purr^2^. They sleep.\u00b9", [("Cats purr.", "d2"), ("They sleep.", "d1")]),
        (
            "A room of 20 m<sup>2</sup>, or 20 m\u00b2, or 10^2^.",
            [("A room of 20 m<sup>2</sup>, or 20 m\u00b2, or 10^2^.", "")],
        ),
        (
            "Cats purr\u30104:0\u2020source\u3011. They sleep\u30104:1\u2020x.pdf\u3011.",
            [("Cats purr.", "d1"), ("They sleep.", "d2")],
        ),
        (
            "Cats purr\u30104:0\u2020source\u3011. They sleep\u30108:1\u2020x\u3011.",
            [("Cats purr[4:0\u2020].", ""), ("They sleep[8:1\u2020].", "")],
        ),
        ("Cats purr. \ue200cite\ue202turn0search1\ue201", [("Cats purr.", "d2")]),
        ("Cats purr. \ue200filecite\ue202turn0file0\ue202turn0file1\ue201", [("Cats purr.", "d1 d2")]),
        ("Cats purr (1). They sleep (1, 2).", [("Cats purr.", "d1"), ("They sleep.", "d1 d2")]),
        ("Cats (1) purr and (2) sleep.", [("Cats (1) purr and (2) sleep.", "")]),
        ("Born in (2019). They sleep (7).", [("Born in (2019).", ""), ("They sleep (7).", "")]),
        ("It is in `a[1]`. Cats purr `[1]`.", [("It is in `a[1]`.", ""), ("Cats purr.", "d1")]),
        ("1. Cats purr [1].\n2. They sleep [2].", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("1. Cats purr [1]. 2. They sleep [2].", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("(1) Cats purr [1].\n(2) They sleep [2].", [("Cats purr.", "d1"), ("They sleep.", "d2")]),
        ("- [x] Cats purr [1].\n* **They sleep** [2]", [("Cats purr.", "d1"), ("**They sleep**", "d2")]),
        ("# Cats\n\n**In short:**\n\nCats purr [1].\n\nMore\n====", [("Cats purr.", "d1")]),
        ("## Cats purr [1]\n**They sleep.**", [("Cats purr", "d1"), ("**They sleep.**", "")]),
        ("There are two reasons:\n- Cats purr [1].\n- They sleep: [2]", [("Cats purr.", "d1"), ("They sleep:", "d2")]),
        ("Dr. Smith and Prof. Jones met St. Nicholas [1].", [("Dr. Smith and Prof. Jones met St. Nicholas.", "d1")]),
        (
            "See No. 5 and Fig. 2 [1]. The answer is No. 5 cats purr.",
            [("See No. 5 and Fig. 2.", "d1"), ("The answer is No. 5 cats purr.", "")],
        ),
        ("Is it so? No. Cats purr [1].", [("Is it so?", ""), ("No.", ""), ("Cats purr.", "d1")]),
        (
            "J. R. R. Tolkien of Acme Inc. Ltd. wrote 3.5 pages [1].",
            [("J. R. R. Tolkien of Acme Inc. Ltd. wrote 3.5 pages.", "d1")],
        ),
        ("It is Acme Inc. The firm grew [1].", [("It is Acme Inc.", ""), ("The firm grew.", "d1")]),
        ("See https://a.b/c.d?e=F. Cats purr [1].", [("See https://a.b/c.d?e=F.", ""), ("Cats purr.", "d1")]),
        (
            "Well... Cats purr [1]. They ... Sleep [2].",
            [("Well...", ""), ("Cats purr.", "d1"), ("They ... Sleep.", "d2")],
        ),
        (
            "\u201cCats purr.\u201d They sleep [1]. **Yes.** \u00c9l\u00e9gant [2].",
            [("\u201cCats purr.\u201d", ""), ("They sleep.", "d1"), ("**Yes.**", ""), ("\u00c9l\u00e9gant.", "d2")],
        ),
        (
            "\u732b\u7761\u3002\u72ac\u5420\uff01[1]\u9e1f\u98de",
            [("\u732b\u7761\u3002", ""), ("\u72ac\u5420\uff01", "d1"), ("\u9e1f\u98de", "")],
        ),
        (
            "| Who | What |\n|---|---|\n| Cats | purr [1] |\n| Dogs. Big ones | bark |",
            [("Cats | purr", "d1"), ("Dogs. Big ones | bark", "")],
        ),
        ("Cats purr [1].\n\nSources:\n1. A book, 2019\n2. https://a.b/c", [("Cats purr.", "d1")]),
        ("Cats purr [1].\n\n[1]: https://a.b/c", [("Cats purr.", "d1")]),
        ("Cats purr.\nSource: [1]", [("Cats purr.", "d1")]),
        ("Sources\n- Oranges are one [1].\n- Kale is one [2].", [("Oranges are one.", "d1"), ("Kale is one.", "d2")]),
        ("```\nx = a[1]\n```\nCats purr [1].\n~~~\nopen", [("Cats purr.", "d1"), ("open", "")]),
        ("```markdown\nCats purr [1].\n```", [("Cats purr.", "d1")]),
        ("> Cats purr [1].", [("Cats purr.", "d1")]),
    ],
)
def test_citations_are_read_as_models_write_them(text: str, expected: list[tuple[str, str]]) -> None:
    found = [(own.text, " ".join(each or "-" for each in own.citations)) for own in of(text) or ()]
    assert found == expected


@pytest.mark.parametrize("text", ["[{}]", "[{}].", "{}"])
def test_a_sentence_may_cite_a_thousand_documents(text: str) -> None:
    ranking = tuple(f"m{number}" for number in range(1000))
    joint = "][" if text == "[{}]" else ", " if text == "[{}]." else ""
    marks = joint.join(str(number) if joint else f" [{number}]" for number in range(1, 1001))
    (own,) = of("Cats purr " + text.format(marks), ranking) or ()
    assert own.citations == ranking


@pytest.mark.parametrize("piece", ["\n", "[1](", "References\n", "[1] a\n", ". [1]", "[^1]:", "\u3010 1"])
def test_no_text_takes_long_to_read(piece: str) -> None:
    began = time.process_time()
    of("Sources:\n" + piece * 20_000 + "x")
    assert time.process_time() - began < 20


def test_an_answer_of_the_track_says_itself_what_a_sentence_cites() -> None:
    sentences = [{"text": "Cats purr.", "citations": [1, 0, 7]}, {"text": "They sleep.", "citations": ["d9"]}]
    told = of("Cats purr. They sleep.", references='["e1", "e2"]', sentences=json.dumps(sentences))
    assert told == (CitedSentence("Cats purr.", ("e2", "e1", None)), CitedSentence("They sleep.", ("d9",)))


def test_what_nobody_can_place_is_not_read() -> None:
    assert of("Cats purr [1].", ranking=()) is None
    assert of("Cats purr.", citations='["d1"]') is None
    assert of("Cats purr [d1].", ranking=()) == (CitedSentence("Cats purr.", ("d1",)),)
    assert of("Cats purr [1].", ranking=(), citations='["d2"]') == (CitedSentence("Cats purr.", ("d2",)),)


SENTENCES = (
    CitedSentence("one", ("a", "b")),
    CitedSentence("two", ("c", None)),
    CitedSentence("three", ()),
    CitedSentence("four", ("d",)),
)
SAID = {(0, "a"): PARTIAL, (0, "b"): FULL, (1, "c"): NONE, (3, "d"): None}


def test_precision_is_of_pairs_and_recall_of_sentences() -> None:
    first = answer_support(SENTENCES, "first", lambda *pair: SAID[pair])
    assert first == AnswerSupport(0.25, 0.5 / 3, 4, 3, (1, 1, 0), 0, 1, 0, ((0.25, 0.25), (0.5 / 3, 0.5 / 3)))
    every = answer_support(SENTENCES, "all", lambda *pair: SAID[pair])
    assert every == AnswerSupport(1.5 / 4, 1 / 3, 4, 3, (2, 1, 1), 1, 1, 0, ((1.5 / 4, 1.5 / 4), (1 / 3, 1 / 3)))


@pytest.mark.parametrize(
    ("cited", "said", "recall"),
    [
        ("ab", {"a": FULL}, (1, 1, 1)),  # whatever the other document says
        ("ab", {"a": NONE}, (0, None, 1)),
        ("ab", {"a": PARTIAL}, (0.5, None, 1)),
        ("ab", {}, (0, None, 1)),
        ("ab c", {"a": NONE, "c": NONE}, (0, 0, 0.5)),
        ("ab c", {"a": FULL, "c": NONE}, (0.5, 0.5, 0.5)),
        ("ab c d", {"a": PARTIAL, "c": FULL}, (0.5, 1, 1)),
    ],
)
def test_a_sentence_with_a_missing_pair_is_in_the_recall_only_where_it_is_certain(
    cited: str, said: dict[str, int], recall: tuple[float | None, ...]
) -> None:
    sentences = [CitedSentence(name, tuple(name)) for name in cited.split()]
    own = answer_support(sentences, "all", lambda _, name: said.get(name), lambda _, name: name not in said)
    assert (own.ends[1][0], own.recall, own.ends[1][1]) == pytest.approx(recall)
    assert own.missing == own.unjudged == len(cited.replace(" ", "")) - len(said)


def test_an_empty_answer_supports_nothing_and_a_failed_pair_is_no_label() -> None:
    assert answer_support((), "all", lambda *_: 2) == AnswerSupport(
        None, 0.0, 0, 0, (0, 0, 0), 0, 0, 0, ((None, None), (0.0, 0.0))
    )
    assert answer_support(SENTENCES[3:], "all", lambda *_: None).recall is None


def test_an_agents_score_is_the_mean_over_its_answers() -> None:
    def answer(precision: float | None, recall: float) -> AnswerSupport:
        return AnswerSupport(precision, recall, 1, 1, (0, 0, 1), 0, 0)

    scores = support_scores({("q1", "x"): answer(1, 1), ("q2", "x"): answer(None, 0), ("q1", "y"): answer(0.5, 0.5)})
    precision, recall = (own.means["x"] for own in scores)
    assert (precision.value, precision.n, recall.value, recall.n) == (1, 1, 0.5, 2)
    assert (recall.low, recall.high) == (0, 1)  # two queries say little


def tournament(folder: Path, answers: dict[tuple[str, str], str], **sections: Any) -> Any:
    write_data(folder, answers=answers)
    left_out = dict.fromkeys(("retrieval", "pairwise", "criteria"))
    return configured(folder, **{**left_out, "support": {"judge": "judge"}, **sections})


ANSWERS = {("q1", "x"): "About q1, as all tells it [1]. It is new [8].", ("q2", "x"): "About q2 [1]. Nothing else."}


CLAIMS = ("Cats purr [1].", "Dr. Smith met No. 5 [2].", "They sleep, he said.", "It weighs 3.5 kg [1, 2].")
BESIDES = (
    "# About cats",
    "**In short**",
    "Here is why:",
    "```python\nprint(cats[0], cats[1]) # One. Two. [2]\n```",
    "---",
    "| Who | What |\n|---|---|",
    "",
)


@given(
    st.lists(st.tuples(st.sampled_from(CLAIMS), st.sampled_from(BESIDES), st.integers(0, 4)), min_size=1, max_size=6)
)
def test_what_an_answer_writes_besides_its_claims_changes_no_sentence(pieces: list[tuple[str, str, int]]) -> None:
    plain = of("\n\n".join(claim for claim, _, _ in pieces))
    markers = ("", "- ", "{}. ", "({}) ", "* ")
    lines = [
        f"{besides}\n\n{markers[form].format(number)}{claim}" for number, (claim, besides, form) in enumerate(pieces, 1)
    ]
    assert of("\n\n".join(lines)) == plain
    assert of("\n\n".join([*lines, "**References:**\n\n1. A book. By A. B. Smith, 2019.\n2. [2] A page."])) == plain
    assert of("\n\n".join([*lines, "## Sources\n- [1] A book\n- [2]: https://a.b/c"])) == plain


def test_marks_that_are_read_as_no_citations_are_named_with_their_answers(tmp_path: Path) -> None:
    answers = {
        ("q1", "x"): "About q1 [see above]. It is new [1].",
        ("q2", "x"): "About q2 [see above], and so on [sic] (Smith, 2019).",
        ("q1", "y"): "About q1 [1].",
    }
    config = tournament(tmp_path, answers)
    run(config)
    with closing(Store.open(config.store)) as store:
        shown = board(results(store, config.name))
    read_as_none = {agent: (own.answers, own.example) for agent, own in shown.results.marks.items()}
    assert read_as_none == {"x": (2, "[see above]")}
    ((table,),) = (section.blocks for section in shown.sections())
    assert "x: marks such as [see above] are read as no citations, in 2 answers." in table.notes


def test_a_sentence_that_people_were_shown_is_the_one_that_the_judge_was(tmp_path: Path) -> None:
    answers = {("q1", "x"): "About q1 [0].", ("q2", "x"): "About q2 [1]."}
    data = load_data(tournament(tmp_path, answers))
    sentences = data.sentences["q1", "x"]
    assert sentences is not None
    cited = SupportSubject("q1", "x", 0, "nothing")
    shown = KIND.texts(Annotation(KIND.name, "", "q1", cited.agent, cited.other, "", None), data)
    assert shown == [data.queries["q1"].thread, sentences[0].text, None]


def test_a_tournament_checks_citations_and_a_second_run_knows_them(tmp_path: Path) -> None:
    config = tournament(tmp_path, ANSWERS)
    assert run(config).stages[SUPPORT].calls == 2
    assert run(config).stages[SUPPORT].calls == 0
    found = opened(config)
    own = found.results.answers["q1", "x"]
    assert (own.sentences, own.invented, sum(own.pairs)) == (2, 1, 2)
    assert found.columns("x")["support_precision"] == found.scores[0].means["x"]
    assert found.scores[0].means["y"].value is None
    with closing(Store.open(config.store)) as store:
        compared = compare(store, config.name, "x", "y", on=["support_recall"], margin=0.1)
    assert [score.on for score in compared.scores] == ["support_recall"]


def opened(config: Any) -> SupportBoard:
    with closing(Store.open(config.store)) as store:
        return board(results(store, config.name))


def test_a_judge_sees_the_sentence_and_its_document_alone(tmp_path: Path) -> None:
    with LLMServer(lambda _: Reply('{"reason": "It says so.", "support": "partial"}')) as server:
        config = tournament(tmp_path, ANSWERS, base_url=server.openai_url)
        run(config)
        asked = [call.body["messages"][-1]["content"] for call in server.calls]
    assert len(asked) == 2
    assert all("About q1, as all tells it" in text or "About q2." in text for text in asked)
    assert not any("What is" in text or "[1]" in text or "Nothing else" in text for text in asked)
    assert opened(config).results.answers["q1", "x"].pairs == (1, 1, 0)


def test_a_reply_outside_the_contract_is_no_label(tmp_path: Path) -> None:
    with LLMServer(lambda _: Reply("It is fully supported.")) as server:
        config = tournament(tmp_path, ANSWERS, base_url=server.openai_url)
        run(config)
    own = opened(config).results.answers["q2", "x"]
    assert (own.precision, own.unjudged, own.recall) == (None, 1, 0.0)


def test_people_check_the_same_pairs_blind_and_are_held_against_the_judge(tmp_path: Path) -> None:
    config = tournament(tmp_path, ANSWERS)
    run(config)
    with closing(Store.open(config.store)) as store:
        data, judgments = store.dataset(config.name), judgments_of(store, config.name, KIND.name)
        todo = tasks.judged(KIND, judgments, data).queue("ann")
        assert {task.texts for task in todo} == {
            ("About q1, as all tells it.", "About q1, as all tells it."),
            ("About q2.", "About q2, as all tells it."),
        }
        said = [one for task in todo for one in task.annotations("ann", [2])]
        Annotations(store, config.name).add(said)
        assert [task.value for task in tasks.with_values(todo, said)] == [2, 2]
        (level, _), found = next(iter(peoples_opinions(store, config.name)[0].items()))
        assert (level, len(found)) == ("support", 2)
        judged = judges_opinions(store, config.name, read_games(store, config.name), {"support"})
        assert {one.item for one in judged["support", ""]} == {one.item for one in found}
        write_table(tmp_path / "said.csv", KIND, Annotations(store, config.name).latest())
        again = read_table(tmp_path / "said.csv", data)
        assert {one.other for one in again.annotations} == {one.other for one in said}
        answer = replace(data.answers["q2", "x"], text="Something else [1].")
        changed = replace(data, answers={**data.answers, ("q2", "x"): answer})
        assert len(read_table(tmp_path / "said.csv", changed).annotations) == 2
        assert [texts_now(one, changed, {}) == one.texts for one in said].count(True) == 1


def test_without_a_citation_that_can_be_checked_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no answer cites a document whose text is in the data"):
        run(tournament(tmp_path, {}))


def test_references_of_the_track_are_taken_from_a_corpus(tmp_path: Path) -> None:
    given = {"run_id": "x", "topic_id": "t", "topic": "Cats?", "references": ["m1", "m2"]}
    lines = [{**given, "answer": [{"text": "Cats purr.", "citations": [1]}]}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_rows(tmp_path / "corpus.csv", ["did", "document"], [{"did": "m2", "document": "Cats purr a lot."}])
    data = {"answers": [tmp_path / "answers.jsonl"], "corpus": [tmp_path / "corpus.csv"]}
    config = tournament(tmp_path, {}, data=data)
    assert list(load_data(config).documents) == ["m2"]
    assert run(config).stages[SUPPORT].calls == 1
    write_rows(tmp_path / "corpus.csv", ["did", "document"], [{"did": "m3", "document": "Dogs."}])
    with pytest.raises(DataError, match="documents are used by no run, agent or answer"):
        load_data(config)
