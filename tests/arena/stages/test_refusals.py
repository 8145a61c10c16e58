"""Refusals: what answers do is told from their texts, and whether they were right from the queries' column."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragleague as rl
from arena.boards.gate.compare import compare
from arena.boards.gate.queries import pair_board
from arena.boards.refusals import RefusalBoard, board
from arena.data.files import load_dataset
from arena.people import tasks
from arena.people.votes import read_table, write_table
from arena.results.exam import stored_bank, stored_scores
from arena.results.games import read_games
from arena.results.nuggets import nugget_results
from arena.results.opinions import judges_opinions, judgments_of, peoples_opinions
from arena.results.refusals import refusal_scores, results
from arena.run.answers import run_agents
from arena.run.judging import load_data
from arena.stages.refusals import KIND
from arena.store import Store
from arena.store.annotations import Annotations
from judges.errors import ConfigError, DataError, InputError
from judges.refusals import REFUSALS, SAYS_IT, SAYS_SO, reaction
from judges.types import Query
from retrieval_eval.data.tables import write_rows
from retrieval_eval.nuggets.scores import score_table
from tests.support.llm_server import LLMServer, Reply
from tests.support.tournaments import Quiet, configured, run, write_data

ANSWERS, ASKS, REFUSES = 0, 1, 2
HIDDEN = {"contexts", "reference_by"}  # these two give the answer away
REFUSAL = "I am sorry, but I don\u2019t have that information."

Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def mtragun(shared: Path) -> Rows:
    with gzip.open(shared / "data/mtragun/queries.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [{name: value for name, value in row.items() if name not in HIDDEN} for row in rows]


def agents_of(rows: Rows) -> dict[tuple[str, str], str]:
    """Four agents made from the accepted answers, by agent and query."""
    answers: dict[tuple[str, str], str] = {}
    for row in rows:
        number = int(row["qid"][:6], 16)
        invented = f"It was number {number}, and it has been so for {number + 3} years."
        either = random.Random(row["qid"]).choice([invented, REFUSAL])
        made = {"accepted": row["reference"], "always": invented, "never": REFUSAL, "chance": either}
        answers |= {(agent, row["qid"]): text for agent, text in made.items()}
    return answers


def known_reactions(rows: Rows, answers: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], int]:
    """What each answer does, by how it was made; a partial accepted answer does what its words say."""
    done = {"answerable": ANSWERS, "unanswerable": REFUSES, "underspecified": ASKS}
    reacts: dict[tuple[str, str], int] = {}
    for row in rows:
        for agent in ("accepted", "always", "never", "chance"):
            text = answers[agent, row["qid"]]
            if agent != "accepted":
                reacts[agent, row["qid"]] = REFUSES if text == REFUSAL else ANSWERS
            elif row["answerability"] == "partial":
                reacts[agent, row["qid"]] = ("answers", "asks back", "refuses").index(reaction(text))
            else:  # one accepted answer to an unanswerable question answers it
                told_off = text.startswith("Your employer cannot force you to invest in bonds")
                reacts[agent, row["qid"]] = ANSWERS if told_off else done[row["answerability"]]
    return reacts


def write_mtragun(folder: Path, rows: Rows, column: Callable[[str], dict[str, Any]]) -> None:
    write_rows(
        folder / "queries.jsonl",
        ["qid", "query", "messages", "conversation", "answerability", "answerable"],
        [
            {
                "qid": row["qid"],
                "query": row["messages"][-1].get("content", row["messages"][-1].get("text")),
                "messages": row["messages"][:-1],
                "conversation": row["qid"].split("<")[0],
                **column(row["answerability"]),
            }
            for row in rows
        ],
    )
    write_rows(
        folder / "answers.jsonl",
        ["agent", "qid", "answer"],
        [{"agent": agent, "qid": qid, "answer": text} for (agent, qid), text in agents_of(rows).items()],
    )


@pytest.fixture(scope="session")
def judged(mtragun: Rows, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mtragun")
    write_mtragun(folder, mtragun, lambda kind: {"answerability": kind.upper()})
    config = only_refusals(folder, data={name: [folder / f"{name}.jsonl"] for name in ("queries", "answers")})
    assert run(config).stages[REFUSALS].judged + run(config).stages[REFUSALS].known
    return config


def only_refusals(folder: Path, **sections: Any) -> Any:
    left_out = dict.fromkeys(("retrieval", "pairwise", "criteria"))
    return configured(folder, **{**left_out, "refusals": {"judge": "judge"}, **sections})


def opened(config: Any) -> RefusalBoard:
    with closing(Store.open(config.store)) as store:
        shown = board(results(store, config.name))
    assert isinstance(shown, RefusalBoard)
    return shown


def test_words_alone_find_what_accepted_answers_do(mtragun: Rows) -> None:
    found = Counter((row["answerability"], reaction(row["reference"])) for row in mtragun)
    of = Counter(row["answerability"] for row in mtragun)
    assert (of["unanswerable"], of["answerable"], of["underspecified"]) == (39, 141, 44)
    assert found["unanswerable", "refuses"] == 38  # the thirty-ninth answers
    assert found["answerable", "answers"] / of["answerable"] >= 0.97
    assert found["underspecified", "asks back"] / of["underspecified"] >= 0.90
    curly = [row["reference"].replace("'", "\u2019").replace("do not", "don\u2019t") for row in mtragun]
    straight = [row["reference"].replace("\u2019", "'").replace("do not", "don't") for row in mtragun]
    assert [*map(reaction, curly)] == [*map(reaction, straight)]
    assert [*map(reaction, curly)] == [reaction(row["reference"]) for row in mtragun]


def test_every_figure_is_the_count_by_hand(mtragun: Rows, judged: Any) -> None:
    kind = {row["qid"]: row["answerability"] for row in mtragun}
    reacts = known_reactions(mtragun, agents_of(mtragun))
    shown = opened(judged)
    table = {(row["agent"], row["kind"]): row for row in shown.sections()[0].blocks[1].rows}
    for agent in ("accepted", "always", "never", "chance"):
        kept, declined = Counter[str](), Counter[str]()
        for (other, qid), value in reacts.items():
            if other == agent:
                (kept if value == ANSWERS else declined)[kind[qid]] += 1
        ak, uk, ad, ud = kept["answerable"], kept["unanswerable"], declined["answerable"], declined["unanswerable"]
        assert ak + uk + ad + ud == 180
        by_hand = {
            "risk": uk / (ak + uk) if ak + uk else None,
            "carefulness": ud / (ud + uk),
            "alignment": (ak + ud) / 180,
            "coverage": (ak + uk) / 180,
            "wrongly_declined": ad / (ad + ak),
        }
        row = shown.columns(agent)
        assert {name: row[name].value for name in by_hand} == pytest.approx(by_hand), agent
        for name, value in by_hand.items():
            if value is not None:
                assert row[name].low <= value <= row[name].high
                assert row[name].high - row[name].low < 0.35
        for each in ("answerable", "unanswerable", "partial", "underspecified"):
            counts = Counter(value for (other, qid), value in reacts.items() if other == agent and kind[qid] == each)
            cells = table[agent, each]
            assert [cells[name] for name in ("answers", "asks_back", "refuses")] == [counts[v] for v in range(3)]
            assert (cells["right"] is None) is (each == "partial")
    assert list(shown.agents()) == ["accepted", "always", "chance", "never"]
    assert table["accepted", "underspecified"]["right"].value == 1
    assert table["accepted", "partial"]["answers"] + table["accepted", "partial"]["refuses"] == 20
    assert shown.json()["agents"]["never"]["risk"] is None


def test_true_and_false_say_the_same_of_what_has_two_values(mtragun: Rows, judged: Any, tmp_path: Path) -> None:
    two = [row for row in mtragun if row["answerability"] in ("answerable", "unanswerable")]
    write_mtragun(tmp_path, two, lambda kind: {"answerable": kind == "answerable"})
    config = only_refusals(tmp_path, data={name: [tmp_path / f"{name}.jsonl"] for name in ("queries", "answers")})
    run(config)
    assert {name: score.means for name, score in named(opened(config)).items()} == {
        name: score.means for name, score in named(opened(judged)).items()
    }


def named(shown: RefusalBoard) -> dict[str, Any]:
    return {score.name: score for score in shown.scores}


def test_intervals_are_over_conversations() -> None:
    turns = [f"c{at // 5}t{at}" for at in range(100)]
    reacts = {("x", turn): int(turn[1:].split("t")[0]) % 2 for turn in turns}  # a conversation does the same throughout
    answerability = dict.fromkeys(turns, "unanswerable")
    alone, together = (
        refusal_scores(reacts, answerability, clusters)[0].means["x"]  # type: ignore[arg-type]
        for clusters in ({}, {turn: turn.split("t")[0] for turn in turns})
    )
    assert alone.value == together.value == 0.5
    assert (alone.n, together.n) == (100, 20)
    assert None not in (alone.low, alone.high, together.low, together.high)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]


def test_a_failed_judgment_is_in_no_figure_and_in_the_bounds() -> None:
    answerability: Any = {"a1": "answerable", "a2": "answerable", "u1": "unanswerable", "u2": "unanswerable"}
    reacts = {("x", "a1"): ANSWERS, ("x", "a2"): None, ("x", "u1"): ANSWERS, ("x", "u2"): None}
    scores = {each.name: each for each in refusal_scores(reacts, answerability)}
    assert {name: each.means["x"].value for name, each in scores.items()} == {
        "alignment": 0.5,
        "risk": 0.5,
        "carefulness": 0.0,
        "wrongly_declined": 0.0,
        "coverage": 1.0,
    }
    assert all(each.missing("x")[0] > 0 for each in scores.values())
    assert scores["risk"].mean_bounds("x") == pytest.approx((1 / 3, 2 / 3))
    assert scores["alignment"].mean_bounds("x") == (0.25, 0.75)


def test_a_gate_knows_where_lower_is_better(judged: Any) -> None:
    with closing(Store.open(judged.store)) as store:
        means = {each.name: each for each in results(store, judged.name).scores}

        def gate(new: str, old: str, on: str) -> Any:
            (score,) = compare(store, judged.name, new, old, on=on).scores
            return score

        for on in ("refusals", "alignment", "risk", "carefulness"):
            assert gate("accepted", "always", on).verdict == "better", on
            assert gate("always", "accepted", on).verdict == "worse", on
        assert gate("never", "accepted", "wrongly_declined").verdict == "worse"
        assert gate("never", "accepted", "coverage").verdict == "worse"
        risk = gate("always", "chance", "risk")
        values = [means["risk"].means[agent].value for agent in ("always", "chance")]
        assert (risk.new, risk.old) == pytest.approx(values)
        assert risk.result.difference.value == pytest.approx(values[1] - values[0])
        assert "lower is better, old less new" in risk.finding("always", "chance")
        assert gate("never", "accepted", "risk").verdict == "undecided"  # it answered nothing
        with pytest.raises(InputError, match="no such score"):
            gate("never", "accepted", "refusal")
        pairs = pair_board(store, judged.name, ("never", "accepted"), "wrongly_declined")
        assert {pair.difference for pair in pairs.pairs} == {-1.0}


def test_risk_is_compared_by_what_each_query_contributes(judged: Any) -> None:
    with closing(Store.open(judged.store)) as store:
        risk = {each.name: each for each in results(store, judged.name).scores}["risk"]
    given = risk.contributions()
    for row, agent in enumerate(risk.agents):
        value = risk.means[agent].value
        assert (value is None) is bool(np.isnan(given.values[row]).all())
        if value is not None:
            assert given.values[row].mean() == pytest.approx(value)


def test_python_has_each_score(judged: Any) -> None:
    table = rl.open(judged.store).scores()
    assert {"refusals"} | {"risk", "carefulness", "wrongly_declined", "coverage"} >= set(table["score"]) - {"alignment"}
    assert len(rl.open(judged.store).scores("refusals")) == 4
    rows = {row.agent: row.value for row in rl.open(judged.store).scores("risk").itertuples()}
    assert rows["accepted"] == pytest.approx(1 / 142)


def test_without_the_column_only_the_share_declined_is_known(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): REFUSAL, ("q2", "x"): "Which one do you mean?", ("q1", "y"): ""})
    config = only_refusals(tmp_path)
    run(config)
    shown = opened(config)
    assert {agent: each.value for agent, each in named(shown)["declined"].means.items()} == {"x": 1, "y": 0.5, "z": 0}
    assert [*named(shown)] == ["declined"]
    assert shown.agents()[0] == "z"
    assert "add a column 'answerable'" in shown.sections()[0].blocks[0].notes[0]
    with closing(Store.open(config.store)) as store, pytest.raises(InputError, match="no such score"):
        compare(store, config.name, "x", "z", on="refusals")


def test_a_table_of_answers_may_say_which_queries_can_be_answered(tmp_path: Path) -> None:
    rows = [
        {"query": "Who?", "agent": "x", "answer": REFUSAL, "answerable": "false"},
        {"query": "Who?", "agent": "y", "answer": "He.", "answerable": "false"},
        {"query": "When?", "agent": "x", "answer": "Now.", "answerable": ""},
    ]
    table = tmp_path / "answers.csv"
    write_rows(table, list(rows[0]), rows)
    data = load_dataset(answers=[table])
    assert [query.answerability for query in data.queries.values()] == ["unanswerable", None]
    rows[1]["answerable"] = "true"
    write_rows(table, list(rows[0]), rows)
    with pytest.raises(DataError, match="'answerable' of this query is another one"):
        load_dataset(answers=[table])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"answerable": "TRUE"}, "answerable"),
        ({"answerable": "0"}, "unanswerable"),
        ({"answerable": "no", "answerability": " "}, "unanswerable"),
        ({"answerability": '["UNDERSPECIFIED"]', "answerable": "true"}, "underspecified"),
        ({"answerability": "Partial"}, "partial"),
        ({"answerable": "perhaps"}, None),
        ({}, None),
    ],
)
def test_the_column_is_read_as_people_write_it(columns: dict[str, str], expected: str | None) -> None:
    query = Query("q", "Who?", {**columns, "topic": "people"})
    assert query.answerability == expected
    assert query.as_asked().metadata == {"topic": "people"}


def test_a_word_that_says_nothing_is_named_before_anything_is_asked(tmp_path: Path) -> None:
    write_data(tmp_path)
    write_rows(
        tmp_path / "queries.csv",
        ["qid", "query", "answerable"],
        [{"qid": "q1", "query": "Who?", "answerable": "perhaps"}, {"qid": "q2", "query": "What?"}],
    )
    with pytest.raises(ConfigError, match="query q1 has 'perhaps' in the column 'answerable' or 'answerability'"):
        run(only_refusals(tmp_path))


def with_answerable(folder: Path, **answerable: str) -> None:
    rows = [{"qid": qid, "query": f"What is {qid}?", "answerable": cell} for qid, cell in answerable.items()]
    write_rows(folder / "queries.csv", ["qid", "query", "answerable"], rows)


def test_the_judge_of_refusals_is_not_told_what_would_be_right_and_the_other_judges_are(tmp_path: Path) -> None:
    write_data(tmp_path)
    with_answerable(tmp_path, q1="false", q2="true")
    replies = {
        "reaction": '{"reason": "It says so.", "reaction": "refuses"}',
        "verdict": '{"explanation": "Both.", "verdict": "TIE"}',
        "accuracy": '{"explanation": "So.", "relevance": 1, "accuracy": 1, "completeness": 1, "precision": 1}',
        "relevance": '{"reason": "So.", "relevance": "very"}',
    }

    def reply(call: Any) -> Reply:
        system = call.body["messages"][0]["content"]
        return Reply(next((text for name, text in replies.items() if f'"{name}"' in system), replies["relevance"]))

    with LLMServer(reply) as server:
        run(configured(tmp_path, base_url=server.openai_url, retrieval=None, refusals={"judge": "judge"}))
        asked = [[message["content"] for message in call.body["messages"]] for call in server.calls]
    told = Counter(
        (name, "q1" if "What is q1?" in user else "q2", "nothing in the documents answers" in system)
        for system, user in asked
        for name in ("reaction", "verdict", "accuracy")
        if f'"{name}"' in system
    )
    assert told == {
        ("reaction", "q1", False): 3,
        ("reaction", "q2", False): 3,
        ("verdict", "q1", True): 6,
        ("verdict", "q2", False): 6,
        ("accuracy", "q1", True): 3,
        ("accuracy", "q2", False): 3,
    }


def test_agents_are_not_told(tmp_path: Path) -> None:
    with_answerable(tmp_path, q1="false", q2="true")
    told: list[str] = []

    def agent(query: Any) -> str:
        told.append(repr(query))
        return REFUSAL

    declared = {"mine": {"kind": "python", "function": agent}}
    config = only_refusals(tmp_path, data={"queries": [tmp_path / "queries.csv"]}, agents=declared)
    run_agents(config, Quiet())
    run(config)
    assert len(told) == 2
    assert "answerable" not in "".join(told)
    assert named(opened(config))["alignment"].means["mine"].value == 0.5


def test_games_on_unanswerable_queries_are_won_by_who_says_so(tmp_path: Path) -> None:
    write_data(tmp_path, ["q1"], {("q1", "x"): REFUSAL, ("q1", "y"): "What q1 is? q1 is what all tells of q1."})
    with_answerable(tmp_path, q1="false")
    config = configured(tmp_path, pairwise={"judges": ["judge"]})
    run(config)
    with closing(Store.open(config.store)) as store:
        games = read_games(store, config.name)
        scores = games.scores(store.settings(config.name).win_and_tie)
    won = {(games.agents[a], games.agents[b]): score for a, b, score in zip(games.a, games.b, scores, strict=True)}
    assert won == {("x", "y"): 1.0, ("x", "z"): 1.0, ("y", "z"): 0.5}


def test_exam_and_nuggets_ask_of_an_unanswerable_query_that_the_answer_says_so(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): REFUSAL})
    with_answerable(tmp_path, q1="false", q2="true")
    write_rows(tmp_path / "bank.csv", ["qid", "question"], [{"qid": "q2", "question": "What is yyy?"}])
    (tmp_path / "nuggets.jsonl").write_text(
        json.dumps({"qid": "q2", "query": "What is q2?", "nuggets": [{"text": "q2 is yyy", "importance": "vital"}]})
    )
    sections = {
        "exam": {"judge": "judge", "bank": tmp_path / "bank.csv"},
        "nuggets": {
            "judge": "judge",
            "bank": tmp_path / "nuggets.jsonl",
            "assign": {"texts": ["answers", "documents"]},
        },
    }
    config = configured(tmp_path, **dict.fromkeys(("retrieval", "pairwise", "criteria")), **sections)
    run(config)
    with closing(Store.open(config.store)) as store:
        exam, nuggets = stored_scores(store, config.name), nugget_results(store, config.name)
    assert exam is not None
    assert nuggets is not None
    covered = exam.scores[0].cells()
    assert {agent: covered["q1", agent] for agent in "xyz"} == {"x": 1, "y": 0, "z": 0}
    assert [nugget.text for nugget in nuggets.banks["q1"].nuggets] == [SAYS_SO]
    stated = score_table(nuggets.assignments, list(nuggets.banks), nuggets.clusters).scores[0].cells()
    assert {agent: stated["q1", agent] for agent in "xyz"} == {"x": 1, "y": 0, "z": 0}
    assert {query_id for query_id, _ in nuggets.passages} == {"q2"}  # no document can say it
    assert {assignment.query_id for assignment in nuggets.retrieved} == {"q2"}


def test_nobody_writes_questions_or_nuggets_on_an_unanswerable_query(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): REFUSAL})
    with_answerable(tmp_path, q1="false", q2="true")
    replies = {
        "questions": '{"questions": ["What is yyy?"]}',
        "nuggets": '{"nuggets": ["q2 is yyy"]}',
        "labels": '{"labels": ["support"]}',
        "label": '{"reason": "So.", "label": "very relevant"}',
        "importance": '{"labels": ["vital"]}',
    }

    def reply(call: Any) -> Reply:
        system = call.body["messages"][0]["content"]
        if '"vital"' in system:
            return Reply(replies["importance"])
        return Reply(next((text for name, text in replies.items() if f'"{name}"' in system), "3"))

    sections = {
        "exam": {"judge": "judge", "generate": {"per_query": 1}},
        "nuggets": {"judge": "judge", "create": {"from_label": 0}},
    }
    with LLMServer(reply) as server:
        config = configured(tmp_path, base_url=server.openai_url, pairwise=None, criteria=None, **sections)
        run(config)
        written = [
            call.body["messages"][1]["content"]
            for call in server.calls
            if any(f'"{name}", a list' in call.body["messages"][0]["content"] for name in ("questions", "nuggets"))
        ]
    with closing(Store.open(config.store)) as store:
        bank, nuggets = stored_bank(store, config.name), nugget_results(store, config.name)
    assert nuggets is not None
    assert [item.text for item in bank.active["q1"]] == [SAYS_IT]
    assert [item.text for item in bank.active["q2"]] == ["What is yyy?"]
    assert [nugget.text for nugget in nuggets.banks["q1"].nuggets] == [SAYS_SO]
    assert [nugget.text for nugget in nuggets.banks["q2"].nuggets] == ["q2 is yyy"]
    assert len(written) == 2
    assert not any("q1?" in text for text in written)


def test_people_label_the_same_answers_and_are_held_against_the_judge(tmp_path: Path) -> None:
    write_data(tmp_path, answers={("q1", "x"): REFUSAL})
    config = only_refusals(tmp_path)
    run(config)
    with closing(Store.open(config.store)) as store:
        data, judgments = store.dataset(config.name), judgments_of(store, config.name, KIND.name)
        todo = tasks.judged(KIND, judgments, data).queue("ann")
        assert {(task.query_id, task.texts) for task in todo} >= {("q1", (REFUSAL,))}
        said = [one for task in todo for one in task.annotations("ann", [REFUSES])]
        Annotations(store, config.name).add(said)
        (level, _), found = next(iter(peoples_opinions(store, config.name)[0].items()))
        assert (level, len(found)) == ("refusals", 6)
        judged = judges_opinions(store, config.name, read_games(store, config.name), {"refusals"})
        assert {one.item for one in judged["refusals", ""]} == {("x",), ("y",), ("z",)}
        assert Counter(one.value for one in judged["refusals", ""]) == {0.0: 5, 2.0: 1}
        write_table(tmp_path / "said.csv", KIND, Annotations(store, config.name).latest())
        assert len(read_table(tmp_path / "said.csv", data).annotations) == 6
    words = [("x", "refuses"), ("y", "answers"), ("z", "Asks_back")]
    rows = [{"qid": "q1", "agent": agent, "refusals": word, "annotator": "bob"} for agent, word in words]
    write_rows(tmp_path / "words.csv", ["qid", "agent", "refusals", "annotator"], rows)
    read = read_table(tmp_path / "words.csv", load_data(config)).annotations
    assert [one.value for one in read] == [REFUSES, ANSWERS, ASKS]
    rows[0]["refusals"] = "perhaps"
    write_rows(tmp_path / "words.csv", ["qid", "agent", "refusals", "annotator"], rows)
    with pytest.raises(DataError, match=r"must be one of answers \(0\), asks back \(1\), refuses \(2\)"):
        read_table(tmp_path / "words.csv", load_data(config))


def test_a_reply_outside_the_contract_is_no_reaction(tmp_path: Path) -> None:
    write_data(tmp_path)
    with_answerable(tmp_path, q1="false", q2="true")
    with LLMServer(lambda _: Reply("It refuses.")) as server:
        config = only_refusals(tmp_path, base_url=server.openai_url)
        run(config)
    shown = opened(config)
    assert shown.columns("x") == {**dict.fromkeys(named(shown), named(shown)["risk"].means["x"]), "refusals_missing": 2}


def test_an_own_prompt_needs_the_three_values(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "name: own\nversion: '1'\ntask: refusals\nsystem: Say. {{ reply_rule }}\nuser: '{{ answer.text }}'\n"
        "reply: {choices: {does: {stays: 0, goes: 1}}}\n"
    )
    with pytest.raises(ConfigError, match="must map words to 0 "):
        run(only_refusals(tmp_path, refusals={"judge": "judge", "prompt": str(tmp_path / "own.yaml")}))
