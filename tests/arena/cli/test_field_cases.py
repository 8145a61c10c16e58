"""Files as people have them, from public reports: what is read of each, and what is refused with the choice to make."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.data.dataset import notes_of
from arena.data.files import load_dataset

CLI = Callable[..., Any]


@pytest.fixture
def case(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    def copied(name: str) -> Path:
        folder = shared / "data" / "field_cases" / name
        shutil.copytree(folder, tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        return tmp_path / name

    return copied


READ = [
    (
        "04-arena-140k-bothbad",
        "rate arena.parquet",
        [
            "read: arena.parquet: qid=id, agent_a=model_a, agent_b=model_b, verdict=winner; not used: "
            "evaluation_session_id, evaluation_order, conversation_a, conversation_b, language, is_code, timestamp; "
            "40 rows, 40 verdicts, 10 both bad"
        ],
    ),
    (
        "11-open-rag-eval",
        "run vectara.csv langchain.csv --judge lexical",
        [
            "read: vectara.csv, langchain.csv: qid=query_id, query, passages=passage, answer=generated_answer; "
            "not used, kept as metadata: query_run, passage_id",
            "read: 4 queries, 12 documents, 8 answers, 0 gold answers, messages before 0 queries",
        ],
    ),
    (
        "12-ragchecker",
        "run new.json old.json --judge lexical",
        [
            "read: new.json, old.json: qid=query_id, query, reference=gt_answer, answer=response, "
            "passages=retrieved_context; not used, kept as metadata: retrieved_context_claims",
            "read: 5 queries, 6 documents, 10 answers, 5 gold answers, messages before 0 queries",
        ],
    ),
    (
        "17-deepeval-test-run",
        "plan new.json wrapped.json --judge lexical",
        [
            "read: new.json, wrapped.json: query=input, answer=actualOutput, reference=expectedOutput, "
            "passages=retrievalContext; not used, kept as metadata: name, success, metricsData, runDuration, order",
            "read: 5 queries, 5 documents, 10 answers, 5 gold answers, messages before 0 queries",
        ],
    ),
    *(
        (
            name,
            f"run july.{ending} august.{ending} --judge lexical",
            [
                f"read: july.{ending}, august.{ending} (traces): query, answer, passages, trace_id, latency_s, "
                "cost_usd",
                "read: 5 queries, 10 documents, 10 answers, 0 gold answers, messages before 0 queries",
            ],
        )
        for name, ending in (
            ("21-langfuse-v2", "jsonl"),
            ("21-langfuse-v2", "parquet"),
            ("45-traces-gz", "jsonl.gz"),
        )
    ),
    (
        "23-trulens-records",
        "run records.csv --judge lexical --column agent=app_version",
        [
            "read: records.csv: agent=app_version, query=input, answer=output; not used, kept as metadata: app_name, "
            "app_id, record_id, tags, ts, latency, total_tokens, Answer Relevance",
            "read: 4 queries, 0 documents, 8 answers, 0 gold answers, messages before 0 queries",
        ],
    ),
    (
        "32-weights-dups",
        "rate votes.csv",
        [
            "read: votes.csv: qid=question_id, agent_a=model_a, agent_b=model_b, verdict=winner, judge, weight; "
            "35 rows, 35 verdicts, 13 both bad"
        ],
    ),
    (
        "37-gold-answer",
        "run gen-a.jsonl gen-b.jsonl --judge lexical --column answer=generated_answer --column reference=answer",
        [
            "read: gen-a.jsonl, gen-b.jsonl: query=question, reference=answer, answer=generated_answer",
            "read: 12 queries, 0 documents, 24 answers, 12 gold answers, messages before 0 queries",
        ],
    ),
    (
        "41-raget",
        "run t.yaml",
        [
            "read: testset.jsonl: qid=id, query=question, reference=reference_answer, messages=conversation_history; "
            "not used, kept as metadata: reference_context, metadata",
            "read: answers.csv: qid, agent, answer",
            "read: 6 queries, 0 documents, 12 answers, 6 gold answers, messages before 3 queries",
        ],
    ),
    (
        "46-two-query-columns",
        "run a.jsonl b.jsonl --judge lexical",
        [
            "read: a.jsonl, b.jsonl: query=question, answer; not used, kept as metadata: prompt",
            "read: 4 queries, 0 documents, 8 answers, 0 gold answers, messages before 0 queries",
        ],
    ),
    (
        "33-calibrate-scales",
        "calibrate judge.csv --people people.csv",
        [
            "read: judge.csv: qid, agent, criterion, score; 12 grades by 1 rater",
            "read: people.csv: qid, agent, criterion, score, annotator; 24 grades by 2 raters",
        ],
    ),
    (
        "52-negative-labels",
        "agreement llm.qrels --people human.qrels",
        ["read: human.qrels (labels: 40, queries: 10)", "read: llm.qrels (labels: 40, queries: 10)"],
    ),
]


@pytest.mark.parametrize(("name", "command", "lines"), READ, ids=[f"{name}: {command}" for name, command, _ in READ])
def test_what_was_read_is_said(
    case: Callable[[str], Path], cli: CLI, name: str, command: str, lines: list[str]
) -> None:
    case(name)
    ended = cli(*command.split())
    assert ended.status == 0, ended.err
    assert [line for line in ended.err.splitlines() if line.startswith("read: ")] == lines
    assert "read: " not in ended.out
    quiet = cli(*command.split(), "--format", "json")
    assert "read: " not in quiet.err
    json.loads(quiet.out)


REFUSED = [
    *(
        (
            "37-gold-answer",
            f"run {name}-a.jsonl {name}-b.jsonl --judge lexical",
            f"{name}-a.jsonl:1: two columns may be the answer: answer, {column}; say --column answer=NAME, or "
            "columns: {answer: NAME}; the gold answer is 'reference'",
        )
        for name, column in (
            ("gen", "generated_answer"),
            ("resp", "response"),
            ("out", "output"),
            ("pred", "prediction"),
            ("model", "model_answer"),
            ("rag", "rag_answer"),
        )
    ),
    (
        "37-gold-answer",
        "run team1.jsonl team2.jsonl --judge lexical",
        "team1.jsonl:1: two columns may be the answer: answer, response; say --column answer=NAME, or "
        "columns: {answer: NAME}; the gold answer is 'reference'",
    ),
    (
        "23-trulens-records",
        "run records.csv --judge lexical",
        "records.csv:6: a second answer by 'records', see records.csv:2; remove one, or name the agents' column: "
        "columns: {agent: app_version}, or --column agent=app_version ('What is item 0?')",
    ),
    (
        "39-row-ids",
        "run a.jsonl b.jsonl --judge lexical",
        "b.jsonl:1: the same query is '00000000-0000-0000-0000-000000000000' in a.jsonl:1; to go by texts: "
        "columns: {qid: null}, or --column qid= ('00000000-0000-0000-0000-0000000001f4')",
    ),
    (
        "42-annotator-columns",
        "calibrate judge.csv --people people.csv",
        "judges and people have no criteria of the same things to compare: the judges' criteria are 'accuracy', "
        "people's 'Anna' and 'Ben'; if these are people who gave 'accuracy', say --column score=accuracy "
        "--column people:score=Anna --column people:score=Ben",
    ),
    *(
        (
            "51-preference-codings",
            f"rate {name}.csv",
            f"{name}.csv:2: '{column}' holds {holds}; what 0 means differs from study to study: say it, as in {how}",
        )
        for name, column, holds, how in (
            ("zero_one", "preference", "0, 1", "--value 0=A --value 1=B"),
            ("winner_zero_one", "winner", "0, 1", "--value 0=A --value 1=B"),
            ("zero_one_two", "winner", "0, 1, 2", "--value 0=A --value 1=B --value 2=TIE"),
            (
                "helpsteer",
                "preference",
                "-3 to 2",
                "--value -3..-1=A --value 0=TIE --value 1..2=B ('-3')",
            ),
        )
    ),
    (
        "51-preference-codings",
        "rate likert7.csv",
        "likert7.csv:5: 'preference' holds 1 to 7; what numbers mean differs from study to study: say it, as in "
        "--value 1..3=A --value 4=TIE --value 5..7=B ('3')",
    ),
]


@pytest.mark.parametrize(("name", "command", "line"), REFUSED, ids=[f"{name}: {what}" for name, what, _ in REFUSED])
def test_the_choice_to_make_is_named(case: Callable[[str], Path], cli: CLI, name: str, command: str, line: str) -> None:
    case(name)
    ended = cli(*command.split())
    assert (ended.status, ended.out, ended.err) == (2, "", f"error: {line}\n")


def wins(text: str) -> dict[str, tuple[int, int, int]]:
    return {row["agent"]: (row["wins"], row["ties"], row["losses"]) for row in json.loads(text)["agents"]}


@pytest.mark.parametrize(
    ("name", "values", "of_new"),
    [
        ("zero_one", ("0=A", "1=B"), (9, 0, 3)),
        ("zero_one", ("0=B", "1=A"), (3, 0, 9)),
        ("winner_zero_one", ("0=A", "1=B"), (9, 0, 3)),
        ("zero_one_two", ("0=A", "1=B", "2=TIE"), (9, 2, 2)),
        ("helpsteer", ("-3..-1=A", "0=TIE", "1..3=B"), (8, 1, 3)),
        ("likert7", ("1..3=A", "4=TIE", "5..7=B"), (8, 1, 3)),
        ("bools", ("True=A", "False=B"), (9, 0, 3)),
        ("floats", (), (9, 0, 3)),
    ],
)
def test_preferences_count_as_the_user_says(
    case: Callable[[str], Path], cli: CLI, name: str, values: tuple[str, ...], of_new: tuple[int, int, int]
) -> None:
    case("51-preference-codings")
    options = [word for value in values for word in ("--value", value)]
    ended = cli("rate", f"{name}.csv", *options, "--format", "json", "--samples", "0")
    assert ended.status == 0, ended.err
    assert wins(ended.out)["new"] == of_new
    imported = cli("import", "verdicts", f"{name}.csv", *options, "--store", "s.db")
    assert imported.status == 0, imported.err


def test_ties_that_call_both_bad_are_counted(case: Callable[[str], Path], cli: CLI) -> None:
    case("04-arena-140k-bothbad")
    assert "Rows: 40; 10 tied because both are bad." in cli("rate", "arena.parquet").out


def test_scales_that_differ_are_the_first_thing_said(case: Callable[[str], Path], cli: CLI) -> None:
    case("33-calibrate-scales")
    first = cli("calibrate", "judge.csv", "--people", "people.csv").out.splitlines()[0]
    assert "The scales differ: judge gave 0.04 to 0.99, and people 1 to 5, on 12 grades." in first
    assert "0%" not in first
    assert "Read where they differ" not in first
    told = json.loads(cli("calibrate", "judge.csv", "--people", "people.csv", "--format", "json").out)
    assert told["comparisons"][0]["judges"]["judge"]["other_scale"] is True


def test_negative_labels_are_counted(case: Callable[[str], Path], cli: CLI) -> None:
    case("52-negative-labels")
    said = cli("agreement", "llm.qrels", "--people", "human.qrels").out
    assert "human: 18 labels below 0: -2 (6), -1 (12); measures take them for not relevant" in said


def test_votes_in_words_of_their_own_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CLI) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"A": "A ist besser", "B": "B ist besser", "TIE": "beide gleich"}
    said = ["A", "B", "TIE", "A", "A", "B"] * 2
    for name, rows in (("judge", [*said]), ("people", [words[each] for each in said])):
        lines = [f"q{number},x,y,{each}" for number, each in enumerate(rows)]
        Path(f"{name}.csv").write_text("\n".join(["qid,agent_a,agent_b,verdict", *lines]) + "\n")
    options = [word for verdict, own in words.items() for word in ("--value", f"{own}={verdict}")]
    assert cli("rate", "people.csv", *options).out == cli("rate", "judge.csv").out
    for prefix in ("", "people:"):
        own = [word if word == "--value" else f"{prefix}{word}" for word in options]
        held = cli("calibrate", "judge.csv", "--people", "people.csv", *own, "--format", "json")
        assert held.status == 0, held.err
        assert json.loads(held.out)["comparisons"][0]["judges"]["judge"]["n"] == 12
    assert cli("import", "verdicts", "judge.csv", "--store", "s.db", "--tournament", "t").status == 0
    refused = cli("import", "votes", "people.csv", "--store", "s.db", "--tournament", "t")
    assert "or say what it means: --value WORD=A ('A ist besser')" in refused.err
    votes = cli("import", "votes", "people.csv", "--store", "s.db", "--tournament", "t", *options)
    assert "12 labels by people, 12 of them new" in votes.out, votes.err


def test_names_from_outside_command_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CLI) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        rows = [{"question": "q?", "answer": name, "\x1b[31m[bold]red\n": "x"}]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = cli("run", "a.jsonl", "b.jsonl", "--judge", "lexical").err
    assert "\x1b" not in said
    assert "[bold]red" in said.splitlines()[0]


Case = Callable[[str], Path]


def test_outputs_of_a_batch_are_answers_to_its_input(case: Case, cli: CLI) -> None:
    folder = case("47-openai-batch-output")
    said = cli("run", "out.jsonl", "--judge", "lexical").err
    assert "output of OpenAI's batches has no texts of queries; name a table of them in YAML: data: {queries:" in said
    ids = [json.loads(line)["custom_id"] for line in (folder / "out.jsonl").read_text().splitlines()]
    asked = ({"custom_id": name, "body": {"messages": [{"role": "user", "content": f"{name}?"}]}} for name in ids)
    (folder / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    data = load_dataset(folder / "in.jsonl", answers=folder / "out.jsonl")
    assert [query.text for query in data.queries.values()] == [f"{name}?" for name in ids]
    assert all(answer.text.endswith("is x.") for answer in data.answers.values())


CHOSEN = [
    ("01-arena-hard-judgments", "rate our-rag.jsonl --skip-faulty"),
    ("03-lmsys-onehot", "rate train.csv"),
    ("07-label-studio", "rate project-1.json"),
    ("08-wide-table", "run answers.csv --judge lexical --column answer=GPT-4_RAG --column answer=Llama_RAG"),
    ("09-promptfoo-two-prompts", "run results.csv --judge lexical"),
    (
        "42-annotator-columns",
        "calibrate judge.csv --people people.csv --column score=accuracy --column people:score=Anna "
        "--column people:score=Ben",
    ),
]


@pytest.mark.parametrize(("name", "command"), CHOSEN)
def test_what_could_not_be_read_is_read(case: Case, cli: CLI, name: str, command: str) -> None:
    case(name)
    ended = cli(*(word.replace("_", " ") if "RAG" in word else word for word in command.split()))
    assert ended.status == 0, ended.err
    assert ended.err.startswith("read: ")


def test_a_failed_call_of_promptfoo_is_no_answer(case: Case, cli: CLI) -> None:
    folder = case("09-promptfoo-two-prompts")
    for name in ("results.json", "results.jsonl"):
        data = load_dataset(answers=folder / name)
        assert len(data.answers) == 7
        assert any("with an error and no answer" in note and "429 Too Many Requests" in note for note in notes_of(data))
    by_form = [load_dataset(answers=folder / f"results.{ending}") for ending in ("json", "csv")]
    assert by_form[0].agents == by_form[1].agents
    assert [query.text for query in by_form[0].queries.values()] == [
        query.text for query in by_form[1].queries.values()
    ]


@pytest.mark.parametrize("name", ["numpy.csv", "pyrepr.csv"])
def test_lists_of_ragas_are_lists(case: Case, name: str) -> None:
    data = load_dataset(answers=case("22-ragas-csv") / name)
    assert {len(own) for own in data.retrieved.values()} == {2}
    assert not any("[" in document.text for document in data.documents.values())


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_what_deepeval_saved_is_parted(case: Case, ending: str) -> None:
    data = load_dataset(answers=case("57-deepeval-save-as") / f"new.{ending}")
    assert "Students pay half." in {document.text for document in data.documents.values()}


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        *((f"26-excel/{name}", 2) for name in ("sep.csv", "mac.csv", "blank_rows.csv", "ok.csv")),
        *(
            (f"55-json-dialects/{name}", 4)
            for name in ("hf.json", "bom_crlf.jsonl", "pandas_default.json", "columns_lists.json")
        ),
    ],
)
def test_dialects_of_tables(case: Case, name: str, answers: int) -> None:
    folder, _, file = name.partition("/")
    data = load_dataset(answers=case(folder) / file)
    assert len(data.answers) == answers
    assert answers == 4 or [query.text for query in data.queries.values()] == ["Why?", "How?"]


def test_ids_of_pandas(case: Case, cli: CLI) -> None:
    case("27-id-types")
    assert cli("plan", "t.yaml").status == 0
    assert "did you mean '001'?" in cli("plan", "t0.yaml").err


def test_ids_across_formats(case: Case) -> None:
    folder = case("44-ids-across-formats")
    data = load_dataset(answers=[folder / "b.jsonl", folder / "c.csv"])
    assert list(data.queries) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("name", "remarks"),
    [
        ("28-nan-answers", ("4 answers like a missing value", "3 answers like an error")),
        ("43-thinking-in-answers", ("12 answers with a model's thinking",)),
    ],
)
def test_answers_that_look_like_none_are_noted(case: Case, name: str, remarks: tuple[str, ...]) -> None:
    notes = notes_of(load_dataset(answers=case(name) / "a.jsonl"))
    for remark in remarks:
        assert any(note.startswith(f"{remark}, judged like any other") for note in notes)


QRELS = {
    "pandas-float.qrels": "pandas-float: 3 queries, 8 labels",
    "gains.qrels": "write each gain times 1,000: nDCG stays as it is, and from 1 on is relevant ('0.767')",
    "negative.qrels": "labels below 0: -1 (4)",
    "dup.qrels": "has the label 1 already",
    "three.qrels": "three: 3 queries, 8 labels",
    "qrels.json": "qrels: 3 queries, 3 labels",
    "binary-yes.csv": "the label is not a whole number ('relevant')",
}


@pytest.mark.parametrize("name", QRELS)
def test_dialects_of_qrels(case: Case, cli: CLI, name: str) -> None:
    case("30-qrels-dialects")
    ended = cli("metrics", "--qrels", name, "--run", "run.txt", "--measure", "nDCG@5")
    assert QRELS[name] in ended.out + ended.err


@pytest.mark.parametrize(
    "name", ["tabs.run", "table.csv", "sci.run", "msmarco.tsv", "noQ0.run", "notag.run", "run.json"]
)
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
    health = json.loads(cli("leaderboard", "v.db", "--format", "json").out)["judge_health"]
    assert (health["lengths_compared"], health["longer_share"]) == (12, 1.0)
    assert "the same for both answers" not in cli("run", "t.yaml").err
    case("58-plan-chinese")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-real-123")
    row = next(line for line in cli("plan", "t.yaml").out.splitlines() if line.startswith("Games judged"))
    assert 45_000 < int(row.split()[-5].replace(",", "")) < 70_000
