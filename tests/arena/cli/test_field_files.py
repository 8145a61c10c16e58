"""Files as people have them, from public reports: what is done with each now."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from arena.data.dataset import notes_of
from arena.data.files import load_dataset
from tests.conftest import CLI


@pytest.fixture
def case(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Gives a case's folder, a copy of it, and goes there."""

    def opened(name: str) -> Path:
        folder = shutil.copytree(shared / "data" / "field_cases" / name, tmp_path / name)
        monkeypatch.chdir(folder)
        return folder

    return opened


Case = Callable[[str], Path]


def test_a_failed_call_of_promptfoo_is_no_answer(case: Case, cli: CLI) -> None:
    folder = case("09-promptfoo-two-prompts")
    for name in ("results.json", "results.jsonl"):
        data = load_dataset(answers=folder / name)
        assert len(data.answers) == 7
        assert any("with an error and no answer" in note and "429 Too Many Requests" in note for note in notes_of(data))
    assert "write its results as .json" in cli("run", "results.csv", "--judge", "lexical").err


def test_logs_of_inspect_and_openais_batches_say_where_the_text_is(case: Case, cli: CLI) -> None:
    case("19-inspect-log")
    assert "its text is 'completion'" in cli("run", "a.json", "b.json", "--judge", "lexical").err
    case("47-openai-batch-output")
    said = cli("run", "out.jsonl", "--judge", "lexical", "--column", "qid=custom_id").err
    assert "its text is 'body.choices[0].message.content'" in said


@pytest.mark.parametrize("name", ["numpy.csv", "pyrepr.csv"])
def test_lists_of_ragas_are_lists(case: Case, name: str) -> None:
    data = load_dataset(answers=case("22-ragas-csv") / name)
    assert {len(own) for own in data.retrieved.values()} == {2}
    assert not any("[" in document.text for document in data.documents.values())


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_what_deepeval_saved_is_parted(case: Case, ending: str) -> None:
    data = load_dataset(answers=case("57-deepeval-save-as") / f"new.{ending}")
    assert "Students pay half." in {document.text for document in data.documents.values()}


@pytest.mark.parametrize("name", ["sep.csv", "mac.csv", "blank_rows.csv", "ok.csv"])
def test_files_of_excel(case: Case, name: str) -> None:
    data = load_dataset(answers=case("26-excel") / name)
    assert [query.text for query in data.queries.values()] == ["Why?", "How?"]


def test_ids_of_pandas(case: Case, cli: CLI) -> None:
    case("27-id-types")
    assert cli("plan", "t.yaml").status == 0
    assert "did you mean '001'?" in cli("plan", "t0.yaml").err


def test_ids_across_formats(case: Case) -> None:
    folder = case("44-ids-across-formats")
    data = load_dataset(answers=[folder / "b.jsonl", folder / "c.csv"])
    assert list(data.queries) == ["1", "2", "3"]


def test_answers_that_are_errors_are_noted(case: Case) -> None:
    notes = notes_of(load_dataset(answers=case("28-nan-answers") / "a.jsonl"))
    assert any(note.startswith("4 answers like a missing value, judged like any other") for note in notes)
    assert any(note.startswith("3 answers like an error, judged like any other") for note in notes)


def test_thinking_is_noted(case: Case) -> None:
    notes = notes_of(load_dataset(answers=case("43-thinking-in-answers") / "a.jsonl"))
    assert any(note.startswith("12 answers with a model's thinking, judged like any other") for note in notes)


QRELS = {
    "pandas-float.qrels": "pandas-float: 3 queries, 8 labels",
    "gains.qrels": "write each gain times 1,000: nDCG stays as it is, and from 1 on is relevant ('0.767')",
    "negative.qrels": "labels below 0: -1 (4)",
    "dup.qrels": "has the label 1 already",
    "three.qrels": "a line must have 4 fields",
    "binary-yes.csv": "the label is not a whole number ('relevant')",
}


@pytest.mark.parametrize("name", QRELS)
def test_dialects_of_qrels(case: Case, cli: CLI, name: str) -> None:
    case("30-qrels-dialects")
    ended = cli("metrics", "--qrels", name, "--run", "run.txt", "--measure", "nDCG@5")
    assert QRELS[name] in ended.out + ended.err


@pytest.mark.parametrize("name", ["tabs.run", "table.csv", "sci.run", "msmarco.tsv"])
def test_dialects_of_runs(case: Case, cli: CLI, name: str) -> None:
    case("31-run-dialects")
    ended = cli("metrics", "--qrels", "human.qrels", "--run", name, "--measure", "nDCG@5", "AP", "--format", "csv")
    assert "0.505813944582" in ended.out, ended.err


def test_names_with_blanks_between_tabs(case: Case, cli: CLI) -> None:
    case("31-run-dialects")
    assert "our system" in cli("metrics", "--qrels", "human.qrels", "--run", "spaces.run", "--measure", "AP").out


def test_decimal_commas_and_missing_grades(case: Case, cli: CLI) -> None:
    case("34-score-locale")
    assert cli("calibrate", "judge.csv", "--people", "people.csv").status == 0
    assert "--skip-faulty" in cli("calibrate", "judge2.csv", "--people", "people_nan.csv").err
    assert cli("calibrate", "judge2.csv", "--people", "people_nan.csv", "--skip-faulty").status == 0


def test_one_question_in_other_bytes(case: Case) -> None:
    folder = case("38-same-question-other-bytes")
    data = load_dataset(answers=[folder / "a.jsonl", folder / "b.jsonl"])
    assert len(data.queries) == 18, "curly quotes and capitals tell questions apart; codings of an accent do not"


@pytest.mark.parametrize("name", ["hf.json", "bom_crlf.jsonl", "pandas_default.json", "columns_lists.json"])
def test_dialects_of_json(case: Case, name: str) -> None:
    assert len(load_dataset(answers=case("55-json-dialects") / name).answers) == 4


def test_chinese_is_found_measured_cut_and_planned(
    case: Case, cli: CLI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case("54-cjk")
    files = ("--corpus", "corpus.csv", "--queries", "queries.csv")
    assert (
        "nothing is found"
        not in (said := cli("retrieve", *files, "--retriever", "bm25", "--out", "zh.run")).out + said.err
    )
    assert len(Path("zh.run").read_text().splitlines()) >= 3
    assert cli("run", "t2.yaml").status == 0
    cli("make", "grades", "t2.yaml", "--out", "g.csv")
    assert "1/long#5" in Path("g.csv").read_text(), "a long answer is more than one passage of 400"
    cli("import", "verdicts", "votes.csv", "--store", "v.db", "--queries", "zhq.csv", "--answers", "zh.csv")
    assert "100%" in next(
        line for line in cli("leaderboard", "v.db", "--details").out.splitlines() if "Longer wins" in line
    )
    assert "the same for both answers" not in cli("run", "t.yaml").err
    case("58-plan-chinese")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-real-123")
    row = next(line for line in cli("plan", "t.yaml").out.splitlines() if line.startswith("Games judged"))
    assert 45_000 < int(row.split()[-5].replace(",", "")) < 70_000
