"""Labels by character spans of documents: what a chunk of any cut gets, and the same order of systems by each cut."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.results.exam import load_study
from arena.run.judging import load_data
from judges.types import Document
from retrieval_eval.agents.ranking import Bm25Index, Corpus, Hit, terms
from retrieval_eval.data.runs import Ranking, Run, write_run
from retrieval_eval.data.spans import SpanLabels, source_of, span_of
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import read_qrels
from retrieval_eval.documents.passages import PassagesSection, passages_of
from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import DocumentPart, SourceDocument
from tests.support.agents import write_config

TEXT = "Paris is the capital of France. Its river is the Seine.\n\nLyon is older."
SEINE = (TEXT.index("Its"), TEXT.index("\n"))


@pytest.mark.parametrize("ident", ["d#5-5", "d#9-3", "d#s6-15", "d#2-3-4", "d#-4", "#1-2", "d#1-", "d#1.5-2", "d"])
def test_other_ids_are_no_spans(ident: str) -> None:
    assert span_of(ident) is None


def test_a_document_is_named_by_the_longest_beginning() -> None:
    names = {"d7", "d7_old", "file.txt"}
    chunks = ("d7#3", "d7_old-2", "d7", "d70#1", "file.txt#t1")
    assert [source_of(each, names) for each in chunks] == ["d7", "d7_old", "d7", None, "file.txt"]


def _labels(span: str, *chunks: Document, label: int = 2) -> dict[str, int]:
    documents = {each.doc_id: each for each in chunks} | {"d": Document("d", TEXT)}
    ids = [each.doc_id for each in chunks]
    mapped = SpanLabels("human", [span], ids, documents).labels({"q": {span: label}})["q"]
    return dict(mapped)


def test_a_chunk_within_a_long_span_and_one_around_a_short_span_get_its_label() -> None:
    start, end = SEINE
    assert _labels(f"d#0-{len(TEXT)}", Document("d#t1", TEXT[4:12])) == {"d#t1": 2}
    assert _labels(f"d#{start}-{end}", Document("d#t1", TEXT)) == {"d#t1": 2}
    assert _labels(f"d#{start}-{end}", Document("d", TEXT)) == {"d": 2}, "the whole document is a cut too"


@pytest.mark.parametrize(("last", "labelled"), [(4, False), (5, True), (6, True), (10, True)])
def test_half_of_the_shorter_is_enough(last: int, labelled: bool) -> None:
    """The span has ten characters, the chunk begins 100 before it and ends ``last`` into it."""
    chunk = f"d#0-{100 + last}"
    chunks = SpanLabels("human", ["d#100-110"], [chunk, "d#300-400"], {}).chunks
    assert chunks == {"d#100-110": (chunk,) if labelled else ("d#100-110",)}


def test_white_space_does_not_matter() -> None:
    start, end = SEINE
    as_one_line = Document("d#t1", " ".join(TEXT[start:].split()))
    spread = Document("d#t2", TEXT[start:end].replace(" ", " \n\n  "))
    assert _labels(f"d#{start}-{end}", as_one_line, spread) == {"d#t1": 2, "d#t2": 2}
    blank = f"d#{end}-{end + 2}"
    assert _labels(blank, Document("d#t1", TEXT)) == {blank: 2}, "nothing but line breaks is nothing to find"


def test_columns_of_offsets_place_chunks_by_any_id() -> None:
    start, end = SEINE
    span = f"d#{start}-{end}"
    for names in (("source", "start", "end"), ("ref_doc_id", "start_char_idx", "end_char_idx")):
        cells = ("d", f"{start}.0", f"{end}.0")  # as pandas writes them beside an empty cell
        uuid = Document("8c1e", "changed beyond recognition", dict(zip(names, cells, strict=True)))
        assert _labels(span, uuid) == {"8c1e": 2}
    langchain = Document("77ab", TEXT[start:end], {"source": "d", "start_index": str(start)})
    assert _labels(span, langchain) == {"77ab": 2}


def test_of_several_labels_the_highest_counts_and_a_chunks_own_before_them() -> None:
    labels = {"q": {"d#0-10": 1, "d#5-12": 3, "d#20-30": 2}, "p": {"d#0-10": 0, "plain": 1}}
    ids = [ident for labelled in labels.values() for ident in labelled]
    mapped = SpanLabels("human", ids, ["d#0-12", "d#20-30", "d#20-28", "plain"], {}).labels(labels)
    assert mapped["q"] == {"d#0-12": 3, "d#20-30": 2, "d#20-28": 2}
    assert mapped["p"] == {"d#0-12": 0, "plain": 1}
    own = SpanLabels("human", ["d#0-10", "d#0-12"], ["d#0-12"], {}).labels({"q": {"d#0-10": 3, "d#0-12": 1}})
    assert own == {"q": {"d#0-12": 1}}


def test_labels_of_this_very_cut_stay_as_they_are() -> None:
    """Windows that share a half would else take each other's labels."""
    labels = {"q": {"d#0-10": 1, "d#5-15": 0}}
    spans = SpanLabels("judge", labels["q"], ["d#0-10", "d#5-15", "d#10-20"], {})
    assert spans.labels(labels) is labels


def test_a_heading_of_digits_makes_no_id_like_a_span() -> None:
    parts = (DocumentPart("1", None, ("One.", "Two.")), DocumentPart("2024", None, ("Three.",)))
    document = SourceDocument("f.md", "F", parts)
    ids = [each.doc_id for each in passages_of(document, PassagesSection(by="paragraph"))]
    assert ids == ["f.md#section-1-1", "f.md#section-1-2", "f.md#section-2024-1"]


def test_a_table_of_labels_may_have_columns_of_positions(tmp_path: Path) -> None:
    file = tmp_path / "human.csv"
    file.write_text("qid,did,start,end,label\nq,d,3,9,2\nq,e,,,1\nq,f,2.0,4.0,\n", encoding="utf-8")
    qrels = read_qrels(file)
    assert (qrels.labels, qrels.missing) == ({"q": {"d#3-9": 2, "e": 1}}, {"q": frozenset({"f#2-4"})})
    mapped = qrels.on_chunks(["d#0-9", "f#1-9", "e"], {})
    assert (mapped.labels, mapped.missing) == ({"q": {"d#0-9": 2, "e": 1}}, {"q": frozenset({"f#1-9"})})
    file.write_text("qid,did,start,end,label\nq,d,9,3,2\n", encoding="utf-8")
    with pytest.raises(Exception, match=r"human\.csv:2: 'start' and 'end' must be whole numbers, the first one less"):
        read_qrels(file)


SYSTEMS = ("chance", "beginnings", "words", "bm25")
"""From worst to best."""
MEASURES = ("nDCG@10", "AP")
CUTS = {
    "paragraph": PassagesSection(by="paragraph", size=60),
    "tokens": PassagesSection(by="tokens", size=90, overlap=30),
    "sentences": PassagesSection(by="sentences", size=4, overlap=1),
    "uncut": None,
}


def _cranfield(folder: Path) -> Iterator[SourceDocument]:
    for line in (folder / "documents.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["text"].strip():
            lines = record["text"].replace(" . ", " .\n")  # where the sentences end, as long as before
            yield SourceDocument(record["docid"], "", (DocumentPart("", None, (lines,)),))


def _uncut(document: SourceDocument) -> Iterator[Document]:
    yield Document(document.source, document.parts[0].paragraphs[0])


def _searchers(chunks: Sequence[Document]) -> dict[str, Callable[[str], Sequence[Hit]]]:
    """Four systems that differ in earnest: BM25, BM25 on each chunk's beginning, shared words, and chance."""
    firsts = [Document(each.doc_id, " ".join(each.text.split()[:5])) for each in chunks]
    words = [(each, Counter(terms(each.text))) for each in chunks]
    chance = random.Random(0)

    def shared_words(query: str) -> list[Hit]:
        asked = set(terms(query))
        hits = [Hit(each, float(sum(counts[term] for term in asked))) for each, counts in words]
        return sorted(hits, key=lambda hit: (-hit.score, hit.document.doc_id))[:20]

    def by_chance(query: str) -> list[Hit]:
        return [Hit(each, -float(rank)) for rank, each in enumerate(chance.sample(chunks, 20))]

    whole, beginnings = (Bm25Index(Corpus.of(of).documents) for of in (chunks, firsts))
    return {
        "bm25": partial(whole.find, depth=20),
        "beginnings": partial(beginnings.find, depth=20),
        "words": shared_words,
        "chance": by_chance,
    }


def test_cranfield_cut_three_ways_and_uncut_has_one_order_of_systems(
    cli: Any, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file of labels, of the abstracts behind their titles, scores words, tokens, sentences and whole texts."""
    monkeypatch.chdir(tmp_path)
    folder = shared / "data" / "cranfield"
    documents = {each.source: each for each in _cranfield(folder)}
    lengths = {source: len(each.parts[0].paragraphs[0]) for source, each in documents.items()}
    titles = {source: each.parts[0].paragraphs[0].find(" .\n") + 3 for source, each in documents.items()}
    rows = csv.reader((folder / "queries.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t")
    queries = {row[0]: row[-1] for row in rows if int(row[0]) % 3 == 0}
    labels = [line.split() for line in (folder / "qrels.txt").read_text(encoding="utf-8").splitlines()]
    lines = [
        f"{query_id} 0 {source}#{titles[source]}-{lengths[source]} {label}\n"
        for query_id, _, source, label in labels
        if source in documents and query_id in queries
    ]
    Path("human.qrels").write_text("".join(lines), encoding="utf-8")
    means: dict[str, Any] = {}
    for name, how in CUTS.items():
        cut = partial(passages_of, how=how) if how is not None else _uncut
        chunks = [chunk for each in documents.values() for chunk in cut(each)]
        with Path(f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for chunk in chunks:  # what a splitter does to white space
                text = chunk.text.replace(" ", "  ") if name == "tokens" else " ".join(chunk.text.split())
                file.write(json.dumps({"did": chunk.doc_id, "document": text}) + "\n")
        for system, search in _searchers(chunks).items():
            found = {query_id: search(text) for query_id, text in queries.items()}
            rankings = {
                query_id: Ranking.of([hit.document.doc_id for hit in hits], [hit.score for hit in hits])
                for query_id, hits in found.items()
                if hits
            }
            write_run(f"{name}-{system}.run", Run(system, rankings))
        runs = [f"{name}-{system}.run" for system in SYSTEMS]
        corpus = ("--corpus", f"{name}.jsonl", "--corpus", str(folder / "documents.jsonl"))
        asked = (
            "metrics",
            "--qrels",
            "human.qrels",
            "--run",
            *runs,
            *corpus,
            "--measure",
            "nDCG@10",
            "--measure",
            "AP",
        )
        ended = cli(*asked, "--samples", "20", "--format", "json")
        assert ended.status == 0, ended.err
        means[name] = json.loads(ended.out)["runs"]
    orders = {
        (name, measure): sorted(SYSTEMS, key=lambda run: of[run][measure])
        for name, of in means.items()
        for measure in MEASURES
    }
    assert set(map(tuple, orders.values())) == {SYSTEMS}, means


GUIDE = (
    "# Pumps\n\nPrime the *pump* before use.\n\n## Faults\n\nNo water: open the `inlet` valve.\n\nNoise: tighten it.\n"
)


def test_a_run_scores_chunks_of_a_folder_by_spans_of_its_files(cli: Any, tmp_path: Path) -> None:
    """The labels name positions in the files as they stand; the chunks have lost the Markdown."""
    folder = tmp_path / "manuals"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (document,) = read_documents([folder])
    assert isinstance(document, SourceDocument)
    chunks = list(passages_of(document, PassagesSection(by="paragraph")))
    assert [each.doc_id for each in chunks] == ["guide.md#1", "guide.md#faults-1", "guide.md#faults-2"]
    start = GUIDE.index("open")
    (tmp_path / "human.qrels").write_text(f"q 0 guide.md#{start}-{start + 22} 1\nq 0 gone.md#0-9 1\n", encoding="utf-8")
    tables = {
        "queries.csv": [{"qid": "q", "query": "No water?"}],
        "answers.csv": [{"qid": "q", "agent": agent, "answer": "Open it."} for agent in ("a", "b")],
        "documents.csv": [
            {"qid": "q", "did": chunk.doc_id, "document": chunk.text, "agent": agent}
            for agent, found in {"a": chunks[1:], "b": chunks[:1]}.items()
            for chunk in found
        ],
    }
    for name, rows in tables.items():
        write_rows(tmp_path / name, list(rows[0]), rows)
    data = {key: f"{key}.csv" for key in ("queries", "answers", "documents")}
    data |= {"corpus": "manuals", "qrels": "human.qrels"}
    config = write_config(tmp_path, {}, ["q"], data=data)
    ended = cli("run", config)
    assert ended.status == 0, ended.err
    line = "human: spans on chunks: 1 of 2 (chunks: 1); the others count as missed; chunks of these documents"
    assert line in ended.err
    assert load_data(load_config(config)).qrels == {"q": {"guide.md#faults-1": 1, "gone.md#0-9": 1}}
    (folder / "guide.md").write_bytes(GUIDE.encode("utf-8") + b"\xff")
    ended = cli("run", config)
    assert ended.status == 2
    assert "guide.md: labels name spans of this file, but it is not UTF-8 text" in ended.err
    config.write_text(config.read_text(encoding="utf-8").replace("corpus: manuals", "limit: 9"), encoding="utf-8")
    ended = cli("run", config)
    assert "human: spans on chunks: 0 of 2 (chunks: 0)" in ended.err
    assert "place is unknown: 3" in ended.err, "without the files nothing says where their chunks stand"


def test_exam_evidence_by_spans_covers_the_items_of_ranked_chunks(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bank.csv").write_text("qid,item,text\nq,i,What opens?\nq,j,What is tight?\n", encoding="utf-8")
    Path("grades.csv").write_text(
        "qid,did,item,grade\nq,m#40-60,i,5\nq,m#45-90,i,2\nq,m#200-220,j,4\n", encoding="utf-8"
    )
    Path("human.qrels").write_text("q 0 m#40-60 1\n", encoding="utf-8")
    runs = {"a": "m#0-100", "b": "m#90-130"}
    for name, chunk in runs.items():
        Path(f"{name}.run").write_text(f"q Q0 {chunk} 1 1 {name}\n", encoding="utf-8")
    asked = ("grades.csv", "--bank", "bank.csv", "--run", "a.run", "--run", "b.run", "--format", "json")
    ended = cli("exam", "score", *asked)
    assert ended.status == 0, ended.err
    study = load_study(
        Path("grades.csv"), bank=Path("bank.csv"), runs=[Path("a.run"), Path("b.run")], qrels=Path("human.qrels")
    )
    grades = {(entry.passage_id, entry.item_id): entry.grade for entry in study.grades}
    assert grades == {("m#0-100", "i"): 5, ("m#200-220", "j"): 4}
    assert study.labels == {"q": {"m#0-100": 1}}
