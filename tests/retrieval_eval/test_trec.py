"""Runs and qrels: read as trec_eval reads them, and what it would not say is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.errors import DataError
from judges.types import Retrieved
from retrieval_eval.data.runs import Ranking, Run, read_rankings, read_run, read_runs, runs_of, with_ids_of, write_run
from retrieval_eval.data.tables import write_rows
from retrieval_eval.data.trec import Qrels, read_qrels, write_qrels

names = st.text(
    st.characters(min_codepoint=33, exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6
)
scores = st.one_of(
    st.sampled_from([0.0, 1.0, 1.0 + 2**-30, -1.5, 1e-45, 1e39]), st.floats(allow_nan=False, allow_infinity=False)
)


def put(tmp_path: Path, text: str, name: str = "a.run") -> Path:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def kinds(read: Run | Qrels) -> dict[str, int]:
    return {note.kind: note.count for note in read.notes}


def problem(read: Any, path: Path) -> str:
    with pytest.raises(DataError) as raised:
        read(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def trec_eval_order(found: dict[str, float]) -> list[str]:
    """The order in which trec_eval looks at documents, found out by asking for the reciprocal rank of each."""
    import pytrec_eval

    ranks = {}
    for doc_id in found:
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {doc_id: 1}}, {"recip_rank"})
        ranks[doc_id] = round(1 / evaluator.evaluate({"q": found})["q"]["recip_rank"])
    return sorted(ranks, key=ranks.__getitem__)


@given(found=st.dictionaries(names, scores, min_size=1, max_size=8))
def test_documents_stand_in_the_order_that_trec_eval_uses(found: dict[str, float]) -> None:
    ranking = Ranking.of(found, found.values())
    assert list(ranking.doc_ids) == trec_eval_order(found)
    assert dict(zip(ranking.doc_ids, ranking.scores, strict=True)) == found


@settings(max_examples=30)
@given(
    rankings=st.dictionaries(names, st.dictionaries(names, scores, min_size=1, max_size=5), min_size=1, max_size=4),
    name=names,
)
def test_a_run_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rankings: dict[str, dict[str, float]], name: str
) -> None:
    run = Run(name, {query_id: Ranking.of(found, found.values()) for query_id, found in rankings.items()})
    path = tmp_path_factory.mktemp("run") / "some.run.gz"
    write_run(path, run)
    back = read_run(path)
    assert (back.name, dict(back.rankings)) == (name, dict(run.rankings))
    assert kinds(back).keys() <= {"ties"}


@settings(max_examples=30)
@given(labels=st.dictionaries(names, st.dictionaries(names, st.integers(-2, 4), min_size=1), min_size=1))
def test_qrels_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, labels: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("qrels") / "some.qrels"
    write_qrels(path, labels)
    assert read_qrels(path) == Qrels("some", labels)


def test_the_scores_count_and_neither_the_ranks_nor_the_order_of_the_lines(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "1 Q0 low 1 0.5 x\n2 Q0 z 1 7 x\n1 Q0 high 2 0.9 x\n"))
    assert run.rankings["1"] == Ranking(("high", "low"), (0.9, 0.5))
    assert kinds(run) == {"rank_order": 1}
    assert "ranks contradict the scores (queries affected: 1)" in run.notes[0].text


def test_equal_scores_go_by_descending_document_and_that_is_said(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "1 Q0 a 1 2 x\n1 Q0 c 2 2 x\n1 Q0 b 3 1 x\n2 Q0 a 1 1 x\n2 Q0 b 2 0 x\n"))
    assert run.rankings["1"].doc_ids == ("c", "a", "b")
    assert kinds(run) == {"ties": 2}
    assert "2 documents tie (same score in 32 bits; queries affected: 1)" in run.notes[0].text


def test_scores_that_are_equal_in_32_bits_tie(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "1 Q0 a 1 1.00000001 x\n1 Q0 b 2 1.0 x\n"))
    assert run.rankings["1"] == Ranking(("b", "a"), (1.0, 1.00000001))
    assert kinds(run) == {"ties": 2}


@pytest.mark.parametrize(
    ("ranks", "gap"), [((1, 2, 3), False), ((0, 1, 2), False), ((1, 2, 4), True), ((2, 3, 4), True), (("-", "x"), True)]
)
def test_ranks_that_are_missing_are_said(tmp_path: Path, ranks: tuple[object, ...], gap: bool) -> None:
    lines = [f"1 Q0 d{place} {rank} {9 - place} x\n" for place, rank in enumerate(ranks)]
    assert kinds(read_run(put(tmp_path, "".join(lines)))) == ({"rank_gaps": 1} if gap else {})


def test_two_runs_in_one_file_are_said(tmp_path: Path) -> None:
    run = read_run(put(tmp_path, "1 Q0 a 1 2 x\n2 Q0 b 1 1 y\n", "mixed.run"))
    assert run.name == "mixed"
    assert kinds(run) == {"tags": 2}


def test_systems_in_one_file_are_told_apart_by_their_tags_where_that_is_asked_for(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("1.run", "2.run", "3.run"))
    first.write_text("q Q0 a 1 1 one\nq Q0 b 2 2 one\nq Q0 a 1 1 two\n")
    second.write_text("r Q0 a 1 1 one\n")
    assert read_rankings([first, second]) == {("q", "one"): ("b", "a"), ("q", "two"): ("a",), ("r", "one"): ("a",)}
    third.write_text("r Q0 b 1 1 one\n")
    with pytest.raises(DataError, match=r"3\.run:1: an earlier file has what 'one' retrieved for query 'r' already"):
        read_rankings([first, second, third])
    third.write_text("r Q0 b 1 1 one\nr Q0 b 2 0 one\n")
    with pytest.raises(DataError, match=r"3\.run:2: query 'r' of 'one' has this document twice"):
        read_rankings([third])


def test_runs_with_one_tag_are_called_by_their_files(tmp_path: Path) -> None:
    line = "1 Q0 a 1 2 Anserini\n"
    paths = [put(tmp_path, line, "first.run"), put(tmp_path, line, "second.run.gz")]
    third = put(tmp_path, "1 Q0 a 1 2 other\n", "third.run")
    assert [run.name for run in read_runs([*paths, third])] == ["first", "second", "other"]


def test_runs_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "1 Q0 a 1 2 x\n")
    with pytest.raises(DataError, match="has the same tag or name"):
        read_runs([path, path])


RUN_FAULTS = {
    "1 Q0 a 1 2\n": ":2: a line must have 6 fields, 'query Q0 document rank score tag', and has 5",
    "1 Q0 a 1 2 my run\n": ":2: a line must have 6 fields, 'query Q0 document rank score tag', and has 7",
    "1 Q0 a 1 nan x\n": ":2: the score is not a finite number ('nan')",
    "1 Q0 a 1 inf x\n": ":2: the score is not a finite number",
    "1 Q0 a 1 1_0 x\n": ":2: the score is not a finite number",
    "1 Q0 a 1 ٣ x\n": ":2: the score is not a finite number",
    "1 Q0 a 1 high x\n": ":2: the score is not a finite number ('high')",
    "0 Q0 zero 2 9 x\n": ":2: query '0' has this document twice ('zero')",
}


@pytest.mark.parametrize("line", RUN_FAULTS)
def test_a_faulty_line_of_a_run_is_refused_or_listed(tmp_path: Path, line: str) -> None:
    path = put(tmp_path, f"0 Q0 zero 1 1 x\n{line}3 Q0 a 1 1 x\n")
    assert RUN_FAULTS[line] in problem(read_run, path)
    run = read_run(path, faulty="skip")
    assert run.scores() == {"0": {"zero": 1.0}, "3": {"a": 1.0}}
    (fault,) = run.faulty
    assert fault.line == 2
    assert fault.problem in RUN_FAULTS[line]


QRELS_FAULTS = {
    "1 0 a 1.\n": ":2: the label is not a whole number ('1.')",
    "1 0 a 1_0\n": ":2: the label is not a whole number",
    "1 0 a ٣\n": ":2: the label is not a whole number",
    "1 0 a 2147483648\n": ":2: the label has more than 9 digits ('2147483648')",
    "1 0 a yes\n": ":2: the label is not a whole number ('yes')",
    "1 0 a\n": ":2: a line must have 4 fields, 'query 0 document label', and has 3",
    "0 0 zero 2\n": ":2: query '0', document 'zero' has the label 1 already ('2')",
}


@pytest.mark.parametrize("line", QRELS_FAULTS)
def test_a_faulty_line_of_qrels_is_refused_or_listed(tmp_path: Path, line: str) -> None:
    path = put(tmp_path, f"0 0 zero 1\n{line}3 0 a -1\n", "a.qrels")
    assert QRELS_FAULTS[line] in problem(read_qrels, path)
    qrels = read_qrels(path, faulty="skip")
    assert qrels.labels == {"0": {"zero": 1}, "3": {"a": -1}}
    (fault,) = qrels.faulty
    assert fault.line == 2
    assert fault.problem in QRELS_FAULTS[line]
    assert str(fault).startswith("line 2: ")


def test_qrels_that_repeat_themselves_are_noted(tmp_path: Path) -> None:
    qrels = read_qrels(put(tmp_path, "1 0 a 1\n1 0 a 1\n"))
    assert qrels.labels == {"1": {"a": 1}}
    assert kinds(qrels) == {"repeated": 1}


def test_a_file_without_a_usable_line_is_refused_even_when_faults_are_left_out(tmp_path: Path) -> None:
    def lenient(path: Path) -> object:
        return read_qrels(path, faulty="skip")

    assert "holds no usable line of qrels" in problem(read_qrels, put(tmp_path, "\n \n"))
    assert "; line 1: a line must have 4 fields" in problem(lenient, put(tmp_path, "one two\n"))


def test_only_the_white_space_of_c_parts_fields(tmp_path: Path) -> None:
    assert read_qrels(put(tmp_path, "1\t0  a\u00a0b\u2003c 2\r\n")).labels == {"1": {"a\u00a0b\u2003c": 2}}


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_tables_are_read_too(tmp_path: Path, extension: str) -> None:
    write_rows(tmp_path / f"q{extension}", ["qid", "did", "label"], [{"qid": "1", "did": "a b", "label": "2"}])
    write_rows(tmp_path / f"r{extension}", ["qid", "did", "score"], [{"qid": "1", "did": "a b", "score": "0.5"}])
    assert read_qrels(tmp_path / f"q{extension}").labels == {"1": {"a b": 2}}
    run = read_run(tmp_path / f"r{extension}")
    assert (run.name, run.scores(), run.notes) == ("r", {"1": {"a b": 0.5}}, ())


def test_a_faulty_row_of_parquet_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    write_rows(path, ["qid", "did", "label"], [{"qid": q, "did": "a", "label": "1"} for q in ("1", "")])
    assert ": row 2: 'qid' is empty" in problem(read_qrels, path)
    assert [fault.line for fault in read_qrels(path, faulty="skip").faulty] == [2]


def test_the_qrels_of_beir_and_of_ms_marco_are_told_apart_by_their_header(tmp_path: Path) -> None:
    beir = put(tmp_path, "query-id\tcorpus-id\tscore\n1\ta\t2\n", "test.tsv")
    marco = put(tmp_path, "1\t0\ta\t1\n", "qrels.dev.tsv")
    assert read_qrels(beir).labels == {"1": {"a": 2}}
    assert read_qrels(marco).labels == {"1": {"a": 1}}


def test_json_numbers_are_ids_and_scores(tmp_path: Path) -> None:
    path = put(tmp_path, json.dumps({"query_id": 1, "docid": 7, "score": 3, "rank": 1, "run_id": "x"}), "r.jsonl")
    assert (read_run(path).name, read_run(path).scores()) == ("x", {"1": {"7": 3.0}})


@pytest.mark.parametrize("name", ["a b", "", "a\tb"])
def test_a_name_that_a_trec_file_cannot_hold_is_refused_and_no_file_is_left(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot hold a name that is empty or has white space"):
        write_qrels(tmp_path / "out.qrels", {"1": {name: 1}})
    assert list(tmp_path.iterdir()) == []


def test_agents_become_runs_in_the_order_of_their_ranks() -> None:
    entries = [Retrieved("1", "b", "x", 2, 9.0), Retrieved("1", "a", "x", 1, 5.0), Retrieved("1", "a", "w", 1)]
    w, x = runs_of(entries)
    assert (w.name, x.name) == ("w", "x")
    assert x.rankings["1"] == Ranking(("a", "b"), (1.0, 0.5))


def test_an_empty_or_faulty_label_of_a_table_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = [("q", "a", "1"), ("q", "b", ""), ("q", "c", "2."), ("q", "d", ""), ("q", "d", "0")]
    write_rows(path, ["qid", "did", "label"], [dict(zip(("qid", "did", "label"), row, strict=True)) for row in rows])
    with pytest.raises(DataError, match="not a whole number"):
        read_qrels(path)
    found = read_qrels(path, faulty="skip")
    assert (found.labels, found.missing) == ({"q": {"a": 1, "d": 0}}, {"q": frozenset("bc")})


def test_labels_that_pandas_wrote_are_whole_and_gains_are_told_how_to_scale(tmp_path: Path) -> None:
    assert read_qrels(put(tmp_path, "q1 0 d1 2.0\nq1 0 d2 -1.0\n", "a.qrels")).labels == {"q1": {"d1": 2, "d2": -1}}
    for gain, times in (("0.767", "1,000"), ("0.50", "10"), (".25", "100")):
        said = problem(read_qrels, put(tmp_path, f"q1 0 d1 {gain}\n", "b.qrels"))
        assert f"write each gain times {times}: nDCG stays as it is" in said
    assert "times" not in problem(read_qrels, put(tmp_path, "q1 0 d1 good\n", "c.qrels"))


def test_ndcg_does_not_change_with_the_scale_of_gains() -> None:
    from ir_measures import ScoredDoc, calc_aggregate, nDCG
    from ir_measures.util import Qrel

    gains = {"d1": 0.767, "d2": 0.1, "d3": 0.433}
    run = [ScoredDoc("q", doc, score) for doc, score in (("d2", 3.0), ("d1", 2.0), ("d3", 1.0))]
    at = [round(1000 * gain) for gain in gains.values()]
    found = [
        calc_aggregate([nDCG @ 3], [Qrel("q", doc, label * times) for doc, label in zip(gains, at, strict=True)], run)
        for times in (1, 10)
    ]
    assert found[0][nDCG @ 3] == pytest.approx(found[1][nDCG @ 3])
    from math import log2

    ideal = sum(gain / log2(place + 2) for place, gain in enumerate(sorted(gains.values(), reverse=True)))
    own = sum(gains[doc.doc_id] / log2(place + 2) for place, doc in enumerate(run))
    assert found[0][nDCG @ 3] == pytest.approx(own / ideal)


@pytest.mark.parametrize("name", ["msmarco.tsv", "a.run", "a.txt", "a.tsv.gz"])
def test_a_run_of_ms_marco_has_three_columns(tmp_path: Path, name: str) -> None:
    run = read_run(put(tmp_path, "q1\td7\t1\nq1\td3\t2\nq2\td3\t1\n", name))
    assert [ranking.doc_ids for ranking in run.rankings.values()] == [("d7", "d3"), ("d3",)]
    assert not run.notes


def test_tabs_part_names_that_hold_blanks(tmp_path: Path) -> None:
    text = "q1\tQ0\tHR Handbook d1.pdf\t1\t9\tour system\nq1\tQ0\td2\t2\t8\tour system\n"
    run = read_run(put(tmp_path, text))
    assert (run.name, run.rankings["q1"].doc_ids) == ("our system", ("HR Handbook d1.pdf", "d2"))
    qrels = read_qrels(put(tmp_path, "q 1\t0\tHR Handbook d1.pdf\t1\n", "a.qrels"))
    assert qrels.labels == {"q 1": {"HR Handbook d1.pdf": 1}}
    assert "has 7" in problem(read_run, put(tmp_path, "q1 Q0 HR d1.pdf 1 9 sys\n"))


def test_a_run_takes_the_ids_of_labels_where_one_side_holds_floats_only(tmp_path: Path) -> None:
    whole, floats = (read_run(put(tmp_path, f"qid,did,score\n{q},d,1\n", f"{q}.csv")) for q in ("7", "7.0"))
    assert list(with_ids_of(floats, {"7", "8"}).rankings) == ["7"]
    assert list(with_ids_of(whole, {"7.0", "8.0"}).rankings) == ["7.0"]
    assert list(with_ids_of(floats, {"7.0", "8"}).rankings) == ["7.0"]
    assert list(with_ids_of(whole, {"q"}).rankings) == ["7"]


@pytest.mark.parametrize(("name", "part"), [("a.csv", ","), ("b.tsv", "\t")])
def test_a_table_of_ranks_is_a_run(tmp_path: Path, name: str, part: str) -> None:
    text = "qid,docid,rank\nq1,d7,1\nq1,d3,2\n".replace(",", part)
    assert read_run(put(tmp_path, text, name)).rankings["q1"].doc_ids == ("d7", "d3")
