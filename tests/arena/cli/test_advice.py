"""Advice that is printed, carried out in the state that prints it; and files of people, which stay as they are."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.config.schema import load_config
from arena.run.plan import plan
from tests.conftest import CLI
from tests.support.llm_server import Call, LLMServer, Reply, steady_judge
from tests.support.query_writers import texts_of, write_documents

JUDGE = "{{provider: openai, model: gpt, base_url: '{url}', max_attempts: 1, price: {{input: 1, output: 2}}}}"
SYNTH = """
name: t
store: t.db
data: {{corpus: documents}}
judges:
  gpt: {judge}
  words: {{provider: lexical}}
agents:
  old: {{kind: rag, retriever: bm25, depth: 5, passages: 2{old}}}
  new: {{kind: rag, retriever: bm25, depth: 6, passages: 3}}
synth: {{documents: documents, models: gpt, per_passage: 10, quotas: {{gpt: 12}}, out: queries.csv, review: review.csv}}
retrieval: {{judge: words, depth: 3}}
pairwise: {{judges: words}}
"""
GAMES = """
name: t
store: t.db
data: {{answers: a.csv, documents: d.csv}}
judges:
  gpt: {judge}
retrieval: {{judge: gpt}}
pairwise: {{judges: gpt}}
"""
DOWN = "http://127.0.0.1:9/v1"


def writes(call: Call) -> Reply:
    """Write ten queries about each passage; for other prompts, judge steadily."""
    texts = texts_of(call)
    if set(texts) & {"passage"} and "query" not in texts:
        subject = texts["passage"].split()[-1]
        return Reply(
            json.dumps({"queries": [f"What of {subject} and case {subject}{number}?" for number in range(10)]})
        )
    return steady_judge(call)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(writes) as running:
        yield running


def synth(folder: Path, url: str, old: str = "") -> Path:
    if not (folder / "documents").exists():
        write_documents(folder, 6)
    config = folder / "t.yaml"
    config.write_text(SYNTH.format(judge=JUDGE.format(url=url), old=old))
    return config


def games(folder: Path, url: str, queries: int = 20) -> Path:
    answers = [f"q{at},What is {at}?,{agent},{agent} says {at}" for at in range(queries) for agent in ("old", "new")]
    (folder / "a.csv").write_text("\n".join(["qid,query,agent,answer", *answers]) + "\n")
    documents = [
        f"q{at},d{at}{agent},{agent} {'BAD' if at > 5 and agent == 'new' else 'fine'} of {at},{agent}"
        for at in range(queries)
        for agent in ("old", "new")
    ]
    (folder / "d.csv").write_text("\n".join(["qid,did,document,agent", *documents]) + "\n")
    config = folder / "t.yaml"
    config.write_text(GAMES.format(judge=JUDGE.format(url=url)))
    return config


def refuses_bad(call: Call) -> Reply:
    bad = "BAD" in call.body["messages"][-1]["content"]
    return Reply("", ending="content_filter") if bad else steady_judge(call)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def rewritten(path: Path, change: Callable[[list[dict[str, str]]], Any]) -> bytes:
    found = rows(path)
    change(found)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, found[0].keys())
        writer.writeheader()
        writer.writerows(found)
    return path.read_bytes()


@pytest.mark.parametrize("command", [("run",), ("run", "--stage", "synth"), ("make", "queries")])
@pytest.mark.parametrize(
    "change",
    [
        lambda found: found[0].update(query="How do people ask?"),
        lambda found: found.append({**found[0], "qid": "mine", "query": "A question of mine?"}),
        lambda found: found.pop(),
    ],
    ids=["edited", "added", "deleted"],
)
def test_a_changed_file_of_queries_is_kept_and_said(
    tmp_path: Path, cli: CLI, server: LLMServer, command: tuple[str, ...], change: Any
) -> None:
    config, out = synth(tmp_path, server.openai_url), tmp_path / "queries.csv"
    assert cli("make", "queries", config).status == 0
    kept = rewritten(out, change)
    config.write_text(config.read_text().replace("gpt: 12", "gpt: 14"))
    done = cli(*command[:2], config) if command[0] == "make" else cli(command[0], config, *command[1:])
    assert out.read_bytes() == kept
    advice = f"{out}: left as it is, since people changed it; move it away to have it written anew"
    assert advice in done.out + done.err
    out.rename(tmp_path / "mine.csv")
    assert cli("make", "queries", config).status == 0
    assert len(rows(out)) == 14


def test_an_unchanged_file_follows_the_configuration(tmp_path: Path, cli: CLI, server: LLMServer) -> None:
    config, out = synth(tmp_path, server.openai_url), tmp_path / "queries.csv"
    assert cli("make", "queries", config).status == 0
    for number in (14, 9):
        config.write_text(re.sub(r"gpt: \d+}", f"gpt: {number}}}", config.read_text()))
        assert cli("make", "queries", config).status == 0
        assert len(rows(out)) == number


def test_what_people_accepted_is_not_written_over_by_a_run(tmp_path: Path, cli: CLI, server: LLMServer) -> None:
    config, out, review = synth(tmp_path, server.openai_url), tmp_path / "queries.csv", tmp_path / "review.csv"
    assert cli("make", "queries", config).status == 0
    for number in (3, 5):
        rewritten(review, lambda found, number=number: [row.update(decision="accept") for row in found[:number]])
        cli("make", "queries", config, "--reviewed", review)
        assert len(rows(out)) == number
    kept = out.read_bytes()
    assert "since people changed it" in cli("run", config, "--stage", "synth").err
    assert out.read_bytes() == kept


def test_a_run_with_the_server_down_leaves_no_empty_files_behind(tmp_path: Path, cli: CLI, server: LLMServer) -> None:
    config = synth(tmp_path, DOWN)
    down = cli("run", config)
    assert down.status == 3
    assert not list(tmp_path.glob("*.csv"))
    assert "'ragleague failures' lists what failed" in down.err
    assert "quota so far" in down.err
    listed = cli("failures", config)
    assert (listed.status, "what helps with connection: start the server" in listed.out) == (0, True)
    assert cli("plan", config).status == 0
    (tmp_path / "review.csv").write_text("qid,decision,query\n")  # as earlier versions left it
    synth(tmp_path, server.openai_url)
    assert cli("make", "queries", config).status == 0
    assert (len(rows(tmp_path / "queries.csv")), len(rows(tmp_path / "review.csv"))) == (12, 60)


def test_what_is_hopeless_stops_no_judge_and_takes_no_game_away(tmp_path: Path, cli: CLI) -> None:
    with LLMServer(refuses_bad) as server:
        config = games(tmp_path, server.openai_url)
        first = cli("run", config)
        assert "pairwise: 40 judged, 0 needed no call, 0 failed, 0 left" in first.err
        assert "run again with --retry-failed" in first.err
        again = cli("run", config, "--retry-failed")
    assert "stopped" not in again.err
    assert "14 failed, 0 left of 40" in again.err
    assert "the retry failed too; 'ragleague failures' lists what failed, and what may help" in again.err
    assert "--retry-failed" not in again.err
    helps = "what helps with content_filter: choose another 'model', or loosen the filter; then run again with --retry"
    assert helps in cli("failures", config).out
    down = cli("run", config, "--retry-failed")
    assert "judge 'gpt' stopped" in down.err
    assert "relevance: 0 judged, 26 needed no call, 14 failed, 0 left" in down.err
    assert "pairwise: 0 judged, 40 needed no call, 0 failed, 0 left" in down.err
    causes = {own["cause"] for own in json.loads(cli("failures", config, "--format", "json").out)}
    assert causes == {"content_filter"}


def test_running_again_is_advised_where_it_asks_for_something(tmp_path: Path, cli: CLI) -> None:
    config = games(tmp_path, DOWN, queries=3)
    config.write_text(config.read_text().replace("retrieval: {judge: gpt}\n", ""))
    down = cli("run", config)
    assert "run again to go on" in down.err
    assert "start the server, or fix 'base_url'; then run again" in cli("leaderboard", config, "--details").out
    with LLMServer() as server:
        config.write_text(
            GAMES.format(judge=JUDGE.format(url=server.openai_url)).replace("retrieval: {judge: gpt}\n", "")
        )
        assert cli("run", config).status == 0


@pytest.mark.parametrize("on", ["pairwise", "nDCG@3"])
def test_a_gate_with_the_old_system_down_asks_no_judge(tmp_path: Path, cli: CLI, server: LLMServer, on: str) -> None:
    config = synth(tmp_path, server.openai_url)
    assert cli("make", "queries", config).status == 0
    down = f"old: {{kind: http, url: '{DOWN}', request: {{q: '{{query}}'}}, mapping: {{answer: a}}, max_attempts: 1}}"
    config.write_text(re.sub(r"old: .*", down, config.read_text()))
    done = cli("gate", config, "--new", "new", "--old", "old", "--on", on)
    assert done.status == 2
    assert done.err.splitlines()[-1] == (
        "error: old answered no query, so nothing was judged; 'ragleague failures CONFIG' says why"
    )
    assert "relevance" not in done.err
    unknown = cli("gate", config, "--new", "new", "--old", "odl")
    assert "no agent 'odl'" in unknown.err


@pytest.mark.parametrize("state", ["nothing", "queries", "version"])
def test_a_plan_bounds_what_a_run_takes(tmp_path: Path, cli: CLI, server: LLMServer, state: str) -> None:
    config = synth(tmp_path, server.openai_url, old=", generator: gpt")
    text = config.read_text().replace("judge: words", "judge: gpt").replace("judges: words", "judges: gpt")
    config.write_text(text.replace("out: queries.csv", "filters: {answerable: gpt}, out: queries.csv"))
    if state == "queries":
        assert cli("make", "queries", config).status == 0
    if state == "version":
        cli("run", config)
        config.write_text(config.read_text().replace("old: {", "old: {version: '2', "))
    made = plan(load_config(config))
    assert made.most is not None
    assert f"Calls at most: {made.most.calls:,}\n" in cli("plan", config).out
    assert made.most.calls > made.calls > 0
    assert made.most.cost_usd is not None
    before = len(server.calls)
    done = cli("run", config)
    calls = len(server.calls) - before
    assert done.err.count("left of")
    assert 0 < calls <= made.most.calls
    spent = sum(len(call.content) for call in server.calls[before:]) / 4 / 1e6
    assert spent < made.most.cost_usd


def test_doctor_reaches_addresses_and_lists_what_cannot_be_read(tmp_path: Path, cli: CLI) -> None:
    config = synth(tmp_path, DOWN)
    (tmp_path / "documents" / "empty.md").touch()
    plain = cli("doctor", config)
    assert "unread   documents: documents/empty.md: is empty" in plain.out.replace(f"{tmp_path}/", "")
    assert [line for line in plain.out.splitlines() if "extra" in line] == ["ok       extra documents: installed"]
    assert plain.status == 0
    down = cli("doctor", config, "--reach")
    assert (down.status, "judge gpt: gpt at http://127.0.0.1:9/v1: no connection" in down.out) == (2, True)
    asked: list[Call] = []

    def lists(call: Call) -> Reply:
        asked.append(call)
        return Reply(body={"data": [{"id": "gpt"}]})

    with LLMServer(lists) as server:
        synth(tmp_path, server.openai_url)
        up = cli("doctor", config, "--reach")
    assert "was reached (HTTP 200) and lists 'gpt'" in up.out
    assert [call.path for call in asked] == ["/v1/models"]
    assert (
        cli("doctor", "--reach").err
        == "error: --reach: checks the addresses in a configuration; name its YAML file too\n"
    )


def test_a_column_with_many_values_makes_groups_where_it_is_named(tmp_path: Path, cli: CLI) -> None:
    answers = [f"q{at},{agent},{agent} says {at}" for at in range(40) for agent in ("old", "new")]
    (tmp_path / "a.csv").write_text("\n".join(["qid,agent,answer", *answers]) + "\n")
    queries = [f"q{at},What is {at}?,{at}" for at in range(40)]
    (tmp_path / "q.csv").write_text("\n".join(["qid,query,page", *queries]) + "\n")
    config = tmp_path / "t.yaml"
    config.write_text(
        "name: t\nstore: t.db\ndata: {queries: q.csv, answers: a.csv}\n"
        "judges: {words: {provider: lexical}}\npairwise: {judges: words}\n"
    )
    assert cli("run", config).status == 0
    assert "did you mean 'page'?" in cli("queries", config, "--by", "pag").err
    assert cli("queries", config, "--by", "page").out.count("\n") > 40
    assert "its values are" in cli("leaderboard", config, "--group", "page=99").err


def test_tables_for_papers_are_chosen_rounded_and_marked(tmp_path: Path, cli: CLI) -> None:
    for name, best in (("good", (0, 1, 2)), ("bad", (2, 1, 0))):
        lines = [f"q{q} Q0 d{d} {at + 1} {9 - at} {name}" for q in range(20) for at, d in enumerate(best)]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    for name in ("human", "model"):
        (tmp_path / f"{name}.qrels").write_text("".join(f"q{q} 0 d0 1\nq{q} 0 d2 0\n" for q in range(20)))
    given = ("metrics", "--run", tmp_path / "good.run", tmp_path / "bad.run", "--qrels", tmp_path / "human.qrels")
    both = cli(*given, tmp_path / "model.qrels", "--measure", "nDCG@3")
    assert "by nDCG@3 and human" in both.out
    paper = cli(*given, "--measure", "nDCG@3", "--baseline", "bad", "--format", "latex", "--digits", "2").out
    assert r"good & 1.00* \\" in paper
    assert "* differs from bad (sign-flip test, p below 0.05" in paper
    chosen = cli(*given, "--measure", "nDCG@3", "--table", "differences", "--format", "latex").out
    assert r"good & bad & +0.50" in chosen
    assert cli(*given, "--digits", "2").err.startswith("error: --table and --digits: apply only to --format")


def test_several_runs_follow_one_option_of_exam(tmp_path: Path, cli: CLI) -> None:
    (tmp_path / "g.csv").write_text("qid,did,item,grade\nq1,d1,i1,5\nq1,d2,i1,0\nq1,d1,i2,1\nq1,d2,i2,4\n")
    for name, did in (("a", "d1"), ("b", "d2")):
        (tmp_path / f"{name}.run").write_text(f"q1 Q0 {did} 1 1.0 {name}\n")
    runs = tmp_path / "a.run", tmp_path / "b.run"
    after = cli("exam", "score", tmp_path / "g.csv", "--run", *runs, "--format", "json")
    assert after.status == 0, after.err
    assert (
        after.out
        == cli("exam", "score", "--run", runs[0], "--run", runs[1], tmp_path / "g.csv", "--format", "json").out
    )
    (tmp_path / "human.qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    agreement = "exam", "agreement", tmp_path / "g.csv", "--qrels", tmp_path / "human.qrels"
    said = cli(*agreement).err
    assert "grades reach to 5 and people's labels to 1" in said
    given = re.search(r"--map (\S+)", said)
    assert given
    assert "--map" not in cli(*agreement, "--map", given[1]).err
