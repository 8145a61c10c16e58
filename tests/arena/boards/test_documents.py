"""Retrieval on the leaderboard: scores by the judge's labels and by people's, and how far the two agree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.boards.documents import RetrievalBoard, retrieval_board
from arena.boards.results import leaderboard
from arena.config.stored import StoredSettings
from arena.config.whole import load_config
from arena.data.dataset import Dataset
from arena.data.files import with_qrels
from arena.store import Result, Store, Wanted
from judges.errors import DataError, InputError
from judges.types import Answer, Document, JudgeFailure, Judgment, Query, Retrieved, Task
from tests.support.llm_server import LLMServer
from tests.support.tournaments import configured, write_data
from tests.support.tournaments import run as run_quietly

SETTINGS: dict[str, Any] = {"ratings": {"bootstrap": {"samples": 100}}, "retrieval": {"depth": 9}}
QUERIES = ("q1", "q2", "q3")


def data(qrels: dict[str, dict[str, int]] | None = None, *more: Retrieved) -> Dataset:
    """``bad`` finds d2, d1 on two of three queries, ``good`` d1, d2 on the first of them; ``shy`` only answers."""
    entries = {
        q: tuple(
            Retrieved(q, doc_id, agent, rank)
            for agent, found in (("bad", ("d2", "d1")), ("good", ("d1", "d2")))
            for rank, doc_id in enumerate(found, start=1)
            if agent == "bad" or q != "q2"
        )
        for q in QUERIES[:2]
    }
    return Dataset(
        {q: Query(q, q) for q in QUERIES},
        {d: Document(d, d) for d in ("d1", "d2")},
        {(q, agent): Answer(q, agent, "so") for q in QUERIES for agent in ("bad", "good", "shy")},
        entries,
        qrels or {},
    )


def said(label: int | str | None, judge: str = "j", query: str = "q1", doc: str = "d1") -> tuple[Wanted, Result | None]:
    result: Result | None = None
    if isinstance(label, int):
        result = Judgment(f"{judge}{query}{doc}", label, "", "", "m")
    elif label is not None:
        result = JudgeFailure(f"{judge}{query}{doc}", label, "no")
    return Wanted(Task.RELEVANCE, judge, query, doc), result


LABELS = [said(2), said(0, doc="d2"), said(1, query="q2"), said(0, query="q2", doc="d2")]


def board(*labels: tuple[Wanted, Result | None], qrels: Any = None, **settings: Any) -> RetrievalBoard:
    found = retrieval_board(data(qrels), labels, StoredSettings(SETTINGS | {"retrieval": {"depth": 9, **settings}}))
    assert found is not None
    return found


def test_every_agent_that_retrieved_is_scored_and_what_it_lacks_is_counted() -> None:
    scores = board(*LABELS, measures=["RR@5"]).scores["judge"]
    assert scores.topics == ("q1", "q2")
    assert scores.agents["good"].per_query == {"RR@5": (1.0, 0.0), "Judged@5": (1.0, 0.0)}
    assert scores.agents["bad"].per_query["RR@5"] == (0.5, 0.5)
    assert (scores.agents["good"].missing, scores.agents["bad"].missing) == (("q2",), ())
    assert board(*LABELS).without_documents == ("shy",)
    assert board(*LABELS).queries == 3


def test_a_query_on_which_an_agent_failed_is_in_none_of_its_scores() -> None:
    """Were it a 0, ``bad`` would fall to 0.25 for a lost connection; ``good`` found nothing, which is one."""
    whole = data()
    answers = {key: answer for key, answer in whole.answers.items() if key != ("q2", "bad")}
    retrieved = {"q1": whole.retrieved["q1"]}
    agents = [{"name": name, "identity": name} for name in ("bad", "good")]
    settings = StoredSettings(SETTINGS | {"agents": agents, "retrieval": {"measures": ["RR@5"]}})
    people = {"q1": {"d1": 0, "d2": 1}, "q2": {"d1": 1}}
    failed = replace(whole, answers=answers, retrieved=retrieved, qrels=people)
    found = retrieval_board(failed, LABELS, settings)
    assert found is not None
    scores = found.scores["judge"].agents
    assert {agent: own.measures["RR@5"].value for agent, own in scores.items()} == {"bad": 0.5, "good": 0.5}
    assert (scores["bad"].per_query["RR@5"], scores["good"].per_query["RR@5"]) == ((0.5, None), (1.0, 0.0))
    assert [(own.unanswered, own.missing) for own in (scores["bad"], scores["good"])] == [(("q2",), ()), ((), ("q2",))]
    assert scores["bad"].measures["RR@5"].low is None, "one query shows nothing of how scores vary"
    assert found.rankings["RR@5"].swapped == ()
    assert found.failing


def test_a_failed_judgment_is_unjudged_and_not_irrelevant() -> None:
    """Were it a label 0, all would be judged and the mean of ``bad`` would be taken over four."""
    found = board(*LABELS[:3], said("contract", query="q2", doc="d2"), measures=["Judged@5"])
    assert found.scores["judge"].agents["bad"].per_query["Judged@5"] == (1.0, 0.5)
    mean = found.mean_labels["bad"]
    assert (mean.mean, mean.judged, mean.of) == (1.0, 3, 4)
    assert (found.distributions["bad"].counts, found.distributions["bad"].failed) == ({0: 1, 1: 1, 2: 1}, 1)
    assert found.judges["j"].distribution.failed == 1


def test_without_any_label_there_are_no_scores_and_no_error() -> None:
    found = board(said(None), said("contract", doc="d2"))
    assert (found.scores, found.rankings, found.agreement) == ({}, {}, None)
    assert (found.judges["j"].distribution.left, found.judges["j"].distribution.failed) == (1, 1)
    assert retrieval_board(data(), [], StoredSettings(SETTINGS)) is None


def test_depth_cuts_what_an_agent_retrieved() -> None:
    found = board(said(0, doc="d2"), said(0, query="q2", doc="d2"), said(1), depth=1, measures=["RR@5"])
    assert found.scores["judge"].agents["bad"].per_query["RR@5"] == (0.0, 0.0)


def test_people_s_labels_stand_beside_the_judge_s() -> None:
    people = {"q1": {"d1": 0, "d2": 2, "nobody's": 1}, "q2": {"d1": 1}}
    found = board(*LABELS, qrels=people, measures=["RR@5"])
    assert list(found.scores) == ["judge", "people"]
    assert found.scores["people"].agents["good"].per_query["RR@5"] == (0.5, 0.0)
    assert found.agreement is not None
    assert (found.agreement.n, found.agreement.first_only, found.agreement.second_only) == (3, 1, 1)
    assert found.agreement.confusion == ((0, 0, 1), (0, 1, 0), (1, 0, 0))
    assert found.judges["j"].agreement == found.agreement
    assert list(found.rankings) == ["RR@5"]  # how much is judged ranks nobody
    assert found.rankings["RR@5"].topics == 2


def test_people_s_labels_alone_score_agents_too() -> None:
    found = board(qrels={"q1": {"d1": 3}})
    assert list(found.scores) == ["people"]
    assert found.measures == ("nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "Judged@10")
    assert (found.judges, found.mean_labels, found.agreement) == ({}, {}, None)


def test_people_s_labels_of_passages_of_answers_are_no_documents_that_somebody_missed() -> None:
    documents = {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}
    with_passages = {"q1": {**documents["q1"], "q1/good#1": 3}, "q2": documents["q2"], "q3": {"q3/shy#1": 1}}
    assert board(*LABELS, qrels=with_passages) == board(*LABELS, qrels=documents)
    assert retrieval_board(data({"q1": {"q1/good#1": 3}}), [], StoredSettings(SETTINGS)) is None
    of_a_document = {"q1": {**documents["q1"], "q9/good#1": 3}, "q2": documents["q2"]}
    assert board(*LABELS, qrels=of_a_document) != board(*LABELS, qrels=documents)


def test_several_judges_are_combined_and_compared() -> None:
    second = [said(2, "k"), said(1, "k", doc="d2"), said(1, "k", "q2"), said("contract", "k", "q2", "d2")]
    found = board(*LABELS, *second, combine="mean", measures=["RR@5"])
    assert found.between_judges is not None
    assert found.between_judges.documents == 3
    assert {judge: own.distribution.failed for judge, own in found.judges.items()} == {"j": 0, "k": 1}
    assert found.scores["judge"].labels == 4  # of the document that one could not judge, the other's label


def test_documents_that_all_agents_were_given_are_nobody_s_retrieval() -> None:
    shared = Dataset({"q1": Query("q1", "q1")}, {"d1": Document("d1", "d1")}, {("q1", "x"): Answer("q1", "x", "so")},
                     {"q1": (Retrieved("q1", "d1", "", 1),)})  # fmt: skip
    found = retrieval_board(shared, [said(2)], StoredSettings(SETTINGS))
    assert found is not None
    assert (found.scores, found.without_documents) == ({}, ("x",))


def test_measures_that_cannot_be_computed_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    write_data(tmp_path)  # its queries have no numbers for names
    with LLMServer() as server:
        config = configured(tmp_path, server.openai_url, retrieval={"judge": "judge", "measures": ["ERR@10"]})
        with pytest.raises(InputError, match=r"^retrieval.measures: .*ERR@10.* cannot be computed"):
            run_quietly(config)
        assert server.calls == []
    with pytest.raises(ValueError, match=r"ndcg@10: no such measure; is it nDCG@10"):
        configured(tmp_path, retrieval={"judge": "judge", "measures": "ndcg@10"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (["q9 0 d 1"], "has labels for none of the queries, but for others ('q9')"),
        (["q1 0 d 1.5"], "the label is not a whole number ('1.5')"),
        (["q1 0 d 1", "q1 0 d 2"], "query 'q1', document 'd' has the label 1 in another file ('2')"),
    ],
)
def test_people_s_labels_that_cannot_be_used_are_one_line(tmp_path: Path, content: list[str], said: str) -> None:
    files = [tmp_path / f"{number}.qrels" for number in range(len(content))]
    for file, line in zip(files, content, strict=True):
        file.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(DataError) as raised:
        with_qrels(data(), files)
    assert str(raised.value).startswith(str(files[-1]))
    assert str(raised.value).endswith(said)


def test_people_s_labels_of_several_files_are_one_set_and_change_the_data(tmp_path: Path) -> None:
    for name, lines in (("a", "q2 0 d1 1\nq9 0 d1 1\n"), ("b", "q1 0 nobody 2\nq2 0 d1 1\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    labelled = with_qrels(data(), [tmp_path / "a", tmp_path / "b"])
    assert labelled.qrels == {"q1": {"nobody": 2}, "q2": {"d1": 1}}
    assert labelled.digest() != data().digest()


CONFIG = """
name: cran
store: {folder}/cran.db
data:
  queries: {folder}/queries.tsv
  runs: [{data}/runs/bm25.run, {data}/runs/lm_dirichlet.run, {data}/runs/bm25_title.run]
  corpus: {data}/documents.jsonl
  qrels: {data}/qrels.txt
judges: {{word: {{provider: lexical}}}}
retrieval: {{judge: word, depth: 10}}
ratings: {{seed: 0}}
"""


@pytest.fixture(scope="module")
def cranfield(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve queries of Cranfield, three runs, their corpus, and people's labels; judged by the lexical baseline."""
    folder = tmp_path_factory.mktemp("cran")
    source = shared / "data" / "cranfield"
    lines = (source / "queries.tsv").read_text(encoding="utf-8").splitlines()[:12]
    topics = [f"{line.split(chr(9))[0]}\t{line.split(chr(9))[-1]}\n" for line in lines]
    (folder / "queries.tsv").write_text("".join(topics), encoding="utf-8")
    (folder / "cran.yaml").write_text(CONFIG.format(folder=folder, data=source), encoding="utf-8")
    assert run_quietly(load_config(folder / "cran.yaml")).complete
    return folder


def test_scores_are_those_of_metrics_on_the_exported_qrels(cli: Any, cranfield: Path, shared: Path) -> None:
    runs = [shared / "data/cranfield/runs" / f"{name}.run" for name in ("bm25", "lm_dirichlet", "bm25_title")]
    assert cli("export", cranfield / "cran.yaml", cranfield / "judge.qrels", "--what", "qrels").status == 0
    told = json.loads(cli("leaderboard", cranfield / "cran.yaml", "--format", "json").out)["retrieval"]
    measures = [part for name in told["measures"] for part in ("--measure", name)]
    asked = ("metrics", "--qrels", cranfield / "judge.qrels", "--run", *runs, *measures, "--format", "json")
    own = json.loads(cli(*asked).out)["qrels"]["judge"]
    assert told["scores"]["judge"]["topics"] == own["topics"] == 12
    for run, found in told["scores"]["judge"]["agents"].items():
        for measure, estimate in found["measures"].items():
            assert estimate["value"] == pytest.approx(own["runs"][run][measure], abs=1e-6), (run, measure)
            assert [estimate["low"], estimate["high"]] == pytest.approx(own["intervals"][run][measure], abs=1e-6)
    people = [
        line for line in (shared / "data/cranfield/qrels.txt").read_text().splitlines() if int(line.split()[0]) <= 12
    ]
    (cranfield / "people.qrels").write_text("\n".join(people) + "\n", encoding="utf-8")
    asked = (
        "metrics",
        "--qrels",
        cranfield / "people.qrels",
        "--run",
        *runs,
        "--measure",
        "nDCG@10",
        "--format",
        "json",
    )
    own = json.loads(cli(*asked).out)["qrels"]["people"]
    for run, found in told["scores"]["people"]["agents"].items():
        assert found["measures"]["nDCG@10"]["value"] == pytest.approx(own["runs"][run]["nDCG@10"], abs=1e-6)
    agreement = ("calibrate", cranfield / "judge.qrels", "--people", cranfield / "people.qrels", "--format", "json")
    sets = json.loads(cli(*agreement).out)["sets"]["judge"]
    assert {name: told["agreement"][name] for name in ("n", "kappa", "kappa_quadratic", "alpha", "confusion")} == {
        name: sets[name] for name in ("n", "kappa", "kappa_quadratic", "alpha", "confusion")
    }


def test_a_store_gives_the_same_board_every_time(cranfield: Path) -> None:
    store = Store.open(str(cranfield / "cran.db"))
    assert leaderboard(store).retrieval == leaderboard(store).retrieval
    store.close()
