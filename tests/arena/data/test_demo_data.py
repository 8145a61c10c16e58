"""The packaged demo data: really produced, complete, and sensible."""

import csv
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from arena.demo.build import DEMO, HANDBOOK, INDEX_PAGE, LatentIndex, build, demo_agents, read_folder, read_questions
from judges.errors import DataError
from judges.providers.lexical import item_share
from judges.types import Document
from retrieval_eval.agents.ranking import InverseDocumentFrequency
from retrieval_eval.documents.passages import sentences
from retrieval_eval.nuggets.files import read_banks

FILES = ("queries.csv", "documents.csv", "answers.csv")
AGENTS = [
    *(f"{kind}-{retriever}" for kind in ("rag", "fusion") for retriever in ("bm25", "dense", "hybrid")),
    "weak-baseline",
]
Rows = list[dict[str, str]]


def _rows(name: str) -> Rows:
    with (DEMO / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables() -> dict[str, Rows]:
    return {name: _rows(name) for name in FILES}


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_command_reproduces_the_committed_files_byte_for_byte(tmp_path: Path, hash_seed: str) -> None:
    command = [sys.executable, "-W", "error", "-m", "arena.demo.build", "--out", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=DEMO.parents[1],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (DEMO / name).read_bytes(), f"{name}: run python -m arena.demo.build"


def test_line_ends_are_the_same_everywhere() -> None:
    assert all(b"\r" not in (DEMO / name).read_bytes() for name in FILES)


def test_queries_are_the_questions(tables: dict[str, Rows]) -> None:
    asked = [
        {"qid": question.query.query_id, "query": question.query.text, "kind": question.kind}
        for question in read_questions()
    ]
    assert tables["queries.csv"] == asked


def test_every_agent_answers_every_question(tables: dict[str, Rows]) -> None:
    given = [(row["qid"], row["agent"]) for row in tables["answers.csv"]]
    assert given == [(row["qid"], agent) for row in tables["queries.csv"] for agent in AGENTS]
    assert all(row["answer"] for row in tables["answers.csv"])


def test_every_sentence_of_an_answer_stands_in_a_passage_its_agent_retrieved(tables: dict[str, Rows]) -> None:
    retrieved: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in tables["documents.csv"]:
        retrieved[row["qid"], row["agent"]].append(" ".join(row["document"].split()))
    for row in tables["answers.csv"]:
        passages = retrieved[row["qid"], row["agent"]]
        for sentence in sentences(row["answer"]):
            assert any(sentence in passage for passage in passages), (row["qid"], row["agent"], sentence)


def test_ranks_count_from_one_and_scores_fall(tables: dict[str, Rows]) -> None:
    rankings: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for row in tables["documents.csv"]:
        rankings[row["qid"], row["agent"]].append((int(row["rank"]), float(row["score"])))
    for (_, agent), ranking in rankings.items():
        assert [rank for rank, _ in ranking] == ([1] if agent == "weak-baseline" else [1, 2, 3])
        scores = [score for _, score in ranking]
        assert scores == sorted(scores, reverse=True)


def test_a_document_has_one_text_and_title_whoever_retrieved_it(tables: dict[str, Rows]) -> None:
    texts = {(row["did"], row["document"], row["title"]) for row in tables["documents.csv"]}
    assert len(texts) == len({row["did"] for row in tables["documents.csv"]})


def test_questions_name_chapters_that_exist() -> None:
    chapters = {path.stem for path in HANDBOOK.glob("*.md")} - {Path(INDEX_PAGE).stem}
    for question in read_questions():
        assert set(question.chapters) <= chapters
        assert bool(question.chapters) == (question.kind != "unanswerable")


def test_the_agents_differ_as_they_should(tables: dict[str, Rows]) -> None:
    """The baseline finds the right chapter least often; answers are not all the same."""
    wanted = {question.query.query_id: set(question.chapters) for question in read_questions() if question.chapters}
    hits: defaultdict[str, set[str]] = defaultdict(set)
    for row in tables["documents.csv"]:
        if row["did"].split("#")[0] in wanted.get(row["qid"], set()):
            hits[row["agent"]].add(row["qid"])
    counts = {agent: len(found) for agent, found in hits.items()}
    weakest = counts.pop("weak-baseline")
    assert weakest < min(counts.values()) >= 0.8 * len(wanted)
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for row in tables["answers.csv"]:
        answers[row["qid"]].add(row["answer"])
    assert sum(len(texts) >= 3 for texts in answers.values()) >= 0.75 * len(answers)


def test_dense_retrieval_finds_a_passage_without_the_words_of_the_question() -> None:
    texts = ["cats purr", "cats and kittens purr", "kittens play", "ships sail", "ships and boats sail"]
    passages = [Document(str(place), text, {}) for place, text in enumerate(texts)]
    index = LatentIndex(passages, InverseDocumentFrequency(passages), dimensions=2)
    assert {hit.document.text for hit in index.find("purr", 3)} == set(texts[:3])


def test_the_index_lists_every_chapter() -> None:
    index = (HANDBOOK / INDEX_PAGE).read_text(encoding="utf-8")
    for path in HANDBOOK.glob("*.md"):
        assert path.name == INDEX_PAGE or f"({path.name})" in index


def test_chapters_are_short_pages_of_short_paragraphs() -> None:
    passages = read_folder(HANDBOOK, exclude={INDEX_PAGE})
    words: defaultdict[str, int] = defaultdict(int)
    for passage in passages:
        words[passage.doc_id.split("#")[0]] += len(passage.text.split())
        assert len(passage.text.split()) <= 150, passage.doc_id
    assert all(350 <= count <= 700 for count in words.values()), words
    assert [agent.name for agent in demo_agents(passages)] == AGENTS


def test_building_without_the_handbook_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="missing"):
        build(tmp_path, handbook=tmp_path / "missing")


def test_exam_questions_and_nuggets_are_about_what_the_handbook_answers() -> None:
    """Each answerable question has both; a nugget's words stand in the chapters that hold the answer."""
    chapters = {question.query.query_id: question.chapters for question in read_questions() if question.chapters}
    assert Counter(row["qid"] for row in _rows("exam.csv")).keys() == chapters.keys()
    banks = read_banks(DEMO / "nuggets.jsonl")
    assert {bank.query_id for bank in banks} == chapters.keys()
    for bank in banks:
        pages = " ".join((HANDBOOK / f"{name}.md").read_text(encoding="utf-8") for name in chapters[bank.query_id])
        assert any(nugget.importance == "vital" for nugget in bank.nuggets)
        for nugget in bank.nuggets:
            assert item_share(nugget.text, pages) >= 0.8, (bank.query_id, nugget.text)
