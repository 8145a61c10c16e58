"""Records of other tools become rows of tables, whatever reads them; what is not of their form stays as it is."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.data.files import load_dataset
from arena.data.verdicts import read_verdicts
from arena.results.opinion_tables import read_opinions
from judges.errors import InputError
from judges.types import Verdict
from retrieval_eval.data.layouts import LAYOUTS, laid_out
from retrieval_eval.data.rows import Rows
from retrieval_eval.data.runs import read_run
from retrieval_eval.data.tables import read_rows
from retrieval_eval.data.trec import read_qrels

ARENA_HARD = {
    "uid": "q",
    "model": "new",
    "baseline": "old",
    "judge": "j",
    "games": [{"score": "A>>B"}, {"score": "A>B"}],
}
MT_BENCH = {
    "question_id": 1,
    "model_1": "x",
    "model_2": "y",
    "g1_winner": "tie",
    "g2_winner": "model_2",
    "judge": ["j"],
}
LABEL_STUDIO = {
    "id": 1,
    "data": {"prompt": "why?", "model1": "new", "model2": "old"},
    "annotations": [
        {"completed_by": 7, "result": [{"type": "pairwise", "from_name": "pw", "value": {"selected": "left"}}]},
        {
            "completed_by": {"email": "b@example.org"},
            "result": [{"type": "rating", "from_name": "tone", "value": {"rating": 0}}],
        },
        {"completed_by": 9, "was_cancelled": True, "result": []},
    ],
}
ARGILLA_2 = {
    "id": "r",
    "fields": {"model_a": "new", "model_b": "old"},
    "responses": {"better": [{"value": "A", "user_id": "u"}, {"value": "B", "user_id": "v"}]},
}
ARGILLA_1 = {
    "fields": {"model_a": "new"},
    "responses": [
        {"user_id": "u", "status": "submitted", "values": {"better": {"value": "A"}}},
        {"user_id": "v", "status": "discarded", "values": None},
    ],
}
INSPECT = {
    "id": 3,
    "epoch": 2,
    "input": [{"role": "user", "content": "why?"}],
    "target": ["so"],
    "output": {"choices": [{"message": {"content": "said"}}], "model": "m"},
}
ROWS: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    (
        "judgments of Arena-Hard",
        ARENA_HARD,
        [
            {
                "uid": "q",
                "model": "new",
                "baseline": "old",
                "qid": "q",
                "agent_a": "old",
                "agent_b": "new",
                "judge": "j",
                "winner_ab": "A>>B",
                "winner_ba": "A>B",
            }
        ],
    ),
    ("judgments of MT-bench", MT_BENCH, [{**MT_BENCH, "judge": "j"}]),
    (
        "Label Studio's JSON",
        LABEL_STUDIO,
        [
            {"id": 1, **LABEL_STUDIO["data"], "pw": "left", "verdict": "left", "annotator": 7},  # type: ignore[dict-item]
            {"id": 1, **LABEL_STUDIO["data"], "tone": 0, "annotator": "b@example.org"},  # type: ignore[dict-item]
        ],
    ),
    (
        "Argilla's JSON",
        ARGILLA_2,
        [
            {"id": "r", "model_a": "new", "model_b": "old", "better": verdict, "annotator": person}
            for verdict, person in (("A", "u"), ("B", "v"))
        ],
    ),
    ("Argilla's JSON", ARGILLA_1, [{"model_a": "new", "better": "A", "annotator": "u"}]),
    (
        "a log of Inspect",
        INSPECT,
        [{"id": 3, "qid": 3, "query": "why?", "reference": "so", "answer": "said", "repeat": 2}],
    ),
    (
        "output of OpenAI's batches",
        {
            "custom_id": "q",
            "response": {
                "body": {
                    "output": [
                        {"type": "reasoning"},
                        {"type": "message", "content": [{"type": "output_text", "text": "said"}]},
                    ]
                }
            },
            "error": None,
        },
        [{"custom_id": "q", "qid": "q", "answer": "said"}],
    ),
    (
        "output of OpenAI's batches",
        {"custom_id": "q", "response": {"body": {"error": {"message": "too long"}}}},
        [{"custom_id": "q", "qid": "q", "answer": "", "error": "too long"}],
    ),
    (
        "results of Anthropic's batches",
        {"custom_id": "q", "result": {"message": {"content": [{"type": "text", "text": "said"}]}}},
        [{"custom_id": "q", "qid": "q", "answer": "said"}],
    ),
    (
        "Phoenix's frame of questions and answers",
        {"input": "why?", "output": "said", "reference": "chunk", "context.span_id": "s"},
        [{"query": "why?", "answer": "said", "passages": ["chunk"]}],
    ),
    (
        "inputs and outputs as objects",
        {
            "inputs": {"question": "why?"},
            "outputs": {"output": "said", "documents": ["p"]},
            "reference_outputs": {"answer": "so"},
        },
        [{"query": "why?", "answer": "said", "passages": ["p"], "reference": "so"}],
    ),
    (
        "inputs and outputs as objects",
        {"inputs.question": "why?", "outputs.answer": "said", "reference.answer": "so", "feedback.right": 1},
        [{"query": "why?", "answer": "said", "reference": "so", "feedback.right": 1}],
    ),
    (
        "a bank of nuggets",  # of AutoJudge, whose nuggets are keyed by their texts
        {
            "query_id": "q",
            "title_query": "Pumps",
            "format_version": "v3",
            "nugget_bank": {
                "What opens?": {
                    "question": "What opens?",
                    "answers": {"valve": {"answer": "valve"}, "inlet": {"answer": "inlet"}},
                    "sub_nuggets": [{"claim": "It is blue.", "claim_id": "9b"}],
                    "importance": "vital",
                }
            },
            "claim_bank": {"Noise.": {"claim": "Noise.", "importance": 3}},
        },
        [
            {
                "query_id": "q",
                "qid": "q",
                "query": "Pumps",
                "items": [
                    {"question": "What opens?", "answers": ["valve", "inlet"]},
                    {"nugget": "It is blue."},
                    {"nugget": "Noise."},
                ],
                "nuggets": [
                    {"text": "What opens? valve or inlet", "importance": "vital"},
                    {"text": "It is blue.", "importance": None},
                    {"text": "Noise.", "importance": None},
                ],
            }
        ],
    ),
    (
        "a bank of nuggets",  # of RAGTIME 2026
        {
            "metadata": {"team_id": "t", "topic_id": "q", "run_id": "r"},
            "nugget_bank": [
                {
                    "question": "Which wear?",
                    "aggregator_type": "AND",
                    "answers": [{"answer": "seal", "references": ["d"]}, {"answer": "bearing"}],
                }
            ],
        },
        [
            {
                "qid": "q",
                "items": [{"question": "Which wear?", "answers": ["seal and bearing"]}],
                "nuggets": [{"text": "Which wear? seal and bearing", "importance": None}],
            }
        ],
    ),
    (
        "a bank of claims",
        {"query_id": "q", "claim_bank": [{"claim": "Noise."}]},
        [
            {
                "query_id": "q",
                "qid": "q",
                "items": [{"nugget": "Noise."}],
                "nuggets": [{"text": "Noise.", "importance": None}],
            }
        ],
    ),
    (
        "inputs and outputs as objects",  # @observe of Langfuse
        {"input": {"args": ["why?"], "kwargs": {}}, "output": "said"},
        [{"query": "why?", "output": "said"}],
    ),
]


@pytest.mark.parametrize(("name", "record", "rows"), ROWS, ids=[f"{name} {at}" for at, (name, _, _) in enumerate(ROWS)])
def test_a_record_of_another_tool_becomes_rows(
    tmp_path: Path, name: str, record: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    laid = laid_out(record)
    assert laid is not None
    assert laid[0] == name
    assert [dict(row) for row in laid[1]] == rows
    files = {"a.jsonl": json.dumps(record), "a.json": json.dumps([record, record])}
    for file, text in files.items():
        (tmp_path / file).write_text(text)
        read = [*read_rows(tmp_path / file)]
        assert [row.values for row in read] == rows * (len(read) // len(rows))
        assert {row.form for row in read} == {name}
    assert [row.values for row in read_rows(Rows("memory", [record]))] == rows


def test_every_format_has_an_example() -> None:
    assert {layout.name for layout in LAYOUTS} - {name for name, _, _ in ROWS} == {
        "input of OpenAI's batches",
        "promptfoo's CSV",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("record", [record for _, record, _ in ROWS])
@settings(max_examples=20)
@given(data=st.data())
def test_odd_values_in_a_known_format_never_crash(record: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    laid_out({**record, key: data.draw(JSON)})


def test_what_has_no_such_keys_is_an_ordinary_row() -> None:
    for record in (
        {"model": "m", "games": 12},
        {"input": "why?", "output": "said"},
        {"question": "why?", "answer": '{"answer": "structured"}'},
        {"vars": {"q": "why?"}, "promptIdx": 0, "response": {"output": "said"}},
    ):
        assert laid_out(record) is None


def test_an_answer_that_is_json_as_text_is_judged_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["input", "output"], ["why?", '{"answer": "so"}']])
    (answer,) = load_dataset(answers=tmp_path / "a.csv").answers.values()
    assert answer.text == '{"answer": "so"}'


def test_cells_of_json_are_read_from_every_format(tmp_path: Path) -> None:
    cells = {"inputs": {"question": "why?"}, "outputs": {"answer": "so"}, "reference_outputs": {"answer": "gold"}}
    texts = {name: json.dumps(cell) for name, cell in cells.items()}
    pd.DataFrame([texts]).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame([texts]).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame([cells]).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    (tmp_path / "a.json").write_text(json.dumps({"columns": [*cells], "data": [[*cells.values()]]}))
    for ending in ("csv", "parquet", "jsonl", "json"):
        data = load_dataset(answers=tmp_path / f"a.{ending}")
        assert [(query.text, query.reference) for query in data.queries.values()] == [("why?", "gold")]
        assert [answer.text for answer in data.answers.values()] == ["so"]


def test_games_of_arena_hard_count_the_second_game_swapped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ARENA_HARD))
    read = read_verdicts(tmp_path / "a.jsonl")
    assert [(game.agent_a, game.agent_b, game.verdict) for game in read.verdicts] == [
        ("old", "new", Verdict.A),
        ("new", "old", Verdict.A),
    ]
    assert read.strong == 1
    assert read.form == "judgments of Arena-Hard"


def test_the_user_may_name_a_tools_own_columns_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ARENA_HARD))
    read = read_verdicts(tmp_path / "a.jsonl", columns={"agent_a": "model", "agent_b": "baseline"})
    assert read.verdicts[0].agent_a == "new"


def test_grades_of_label_studio_are_peoples(tmp_path: Path) -> None:
    record = {**LABEL_STUDIO, "data": {"qid": "q", "agent": "new"}}
    record["annotations"] = [LABEL_STUDIO["annotations"][1]]  # type: ignore[index]
    (tmp_path / "a.json").write_text(json.dumps([record]))
    (opinion,) = read_opinions(tmp_path / "a.json").groups[""]
    assert (opinion.rater, opinion.item, opinion.value) == ("b@example.org", ("new", "tone"), 0)


def test_a_column_of_each_agent_or_judge(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("question,GPT-4 RAG,Llama,note\nwhy?,so,,\nhow?,thus,this,x\n")
    choice = {"answer": ["GPT-4 RAG", "Llama"]}
    data = load_dataset(answers=tmp_path / "wide.csv", columns=choice)
    assert {key[1]: answer.text for key, answer in data.answers.items()} == {"GPT-4 RAG": "thus", "Llama": "this"}
    assert len(data.answers) == 3, "an empty cell is no answer"
    with pytest.raises(InputError, match='say --column "answer=GPT-4 RAG" --column "answer=Llama"'):
        load_dataset(answers=tmp_path / "wide.csv")
    with pytest.raises(InputError, match="no table has a column 'Lama'; is it 'Llama'"):
        load_dataset(answers=tmp_path / "wide.csv", columns={"answer": ["GPT-4 RAG", "Lama"]})
    votes = "qid,model_a,model_b,Anna,Ben\n1,x,y,A,\n2,x,y,B,both bad\n"
    (tmp_path / "votes.csv").write_text(votes)
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in csv.DictReader(votes.splitlines())))
    for ending in ("csv", "jsonl"):
        read = read_verdicts(tmp_path / f"votes.{ending}", columns={"verdict": ["Anna", "Ben"]})
        assert [(game.query_id, game.judge, game.verdict) for game in read.verdicts] == [
            ("1", "Anna", Verdict.A),
            ("2", "Anna", Verdict.B),
            ("2", "Ben", Verdict.TIE),
        ]
        assert read.both_bad == 1
    with pytest.raises(InputError, match="no column 'Zed'"):
        read_verdicts(tmp_path / "votes.csv", columns={"verdict": ["Anna", "Zed"]})
    with pytest.raises(InputError, match="only one column can be 'qid' here"):
        read_verdicts(tmp_path / "votes.csv", columns={"qid": ["Anna", "Ben"]})


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("q a 1\nq b 2\n", ("a", "b")),
        ("q a 9.5\nq b 12.5\n", ("b", "a")),
        ("q a 9\nq b 8\n", ("a", "b")),
        ("q Q0 b 1 7\nq Q0 a 2 3\n", ("b", "a")),
        ("q a 2 3 tag\nq b 1 7 tag\n", ("b", "a")),
    ],
)
def test_runs_with_fewer_fields(tmp_path: Path, text: str, order: tuple[str, ...]) -> None:
    (tmp_path / "x.run").write_text(text)
    assert read_run(tmp_path / "x.run").rankings["q"].doc_ids == order


def test_a_third_field_that_may_be_rank_or_score_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.run").write_text("q a 3\nq b 7\n")
    with pytest.raises(InputError, match="the third field may be a rank or a score"):
        read_run(tmp_path / "x.run")


def test_qrels_of_three_fields_and_json_by_query(tmp_path: Path) -> None:
    (tmp_path / "x.qrels").write_text("q a 2\nq b 0\n")
    (tmp_path / "x.json").write_text('{"q": {"a": 2, "b": 0}}')
    assert read_qrels(tmp_path / "x.qrels").labels == read_qrels(tmp_path / "x.json").labels == {"q": {"a": 2, "b": 0}}


@pytest.mark.parametrize(
    ("winner", "verdict"),
    [("1,0,0", Verdict.A), ("0,1,0", Verdict.B), ("0,0,1", Verdict.TIE), ("True,False,False", Verdict.A)],
)
def test_winners_in_a_column_each(tmp_path: Path, winner: str, verdict: Verdict) -> None:
    header = "id,model_a,model_b,winner_model_a,winner_model_b,winner_tie"
    (tmp_path / "v.csv").write_text(f"{header}\n1,x,y,{winner}\n")
    (game,) = read_verdicts(tmp_path / "v.csv").verdicts
    assert (game.verdict, game.preference) == (verdict, None)


def test_probabilities_are_no_winners(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,model_a,model_b,winner_model_a,winner_model_b,winner_tie\n1,x,y,0.5,0.3,0.2\n")
    with pytest.raises(InputError, match="is a probability and no winner; say --set preferences=soft"):
        read_verdicts(tmp_path / "v.csv")


def test_columns_of_both_orders_of_other_names(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict,first,second\n1,x,y,TIE,A,B\n")
    read = read_verdicts(tmp_path / "v.csv", columns={"winner_ab": "first", "winner_ba": "second"})
    assert [(game.agent_a, game.verdict) for game in read.verdicts] == [("x", Verdict.A), ("y", Verdict.B)]
    with pytest.raises(InputError, match="no column 'winner_ba'"):
        read_verdicts(tmp_path / "v.csv", columns={"winner_ab": "first"})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (text, "both_bad")
            for text in ("both bad", "Tie (bothbad)", "both_bad", "bothbad_vote", "Both are bad.", "neither")
        ),
        *((text, "both_good") for text in ("both good", "tie (bothgood)", "Both are good")),
    ],
)
def test_ties_that_rate_both_answers(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "v.csv").write_text(f"qid,agent_a,agent_b,verdict\n1,x,y,{text}\n")
    read = read_verdicts(tmp_path / "v.csv")
    assert read.verdicts[0].verdict is Verdict.TIE
    assert getattr(read, kind) == 1


def test_weights_count_as_so_many_games(tmp_path: Path, cli: Callable[..., Any]) -> None:
    rows = [("A", 3), ("B", 1), ("A", 1), ("TIE", 2)]
    lines = [f"{at},x,y,{verdict},{weight}" for at, (verdict, weight) in enumerate(rows)]
    (tmp_path / "v.csv").write_text("\n".join(["qid,agent_a,agent_b,verdict,weight", *lines]) + "\n")

    def of_x(*options: str) -> tuple[float, ...]:
        told = json.loads(cli("rate", tmp_path / "v.csv", "--format", "json", "--samples", "0", *options).out)
        row = next(row for row in told["agents"] if row["agent"] == "x")
        return row["wins"], row["ties"], row["losses"]

    assert of_x() == (4, 2, 1)
    assert of_x("--column", "weight=") == (2, 1, 1)
    (tmp_path / "v.csv").write_text("qid,agent_a,agent_b,verdict,weight\n1,x,y,A,-1\n")
    assert "'weight' must be a number of games above 0" in cli("rate", tmp_path / "v.csv").err
