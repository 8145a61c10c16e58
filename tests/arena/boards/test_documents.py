"""Retrieval on the leaderboard: scores by the judge's labels and by people's, and how far the two agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from arena.boards.retrieval import Retrieval
from arena.config.settings import StoredSettings
from arena.data.corpus import with_qrels
from arena.data.dataset import Dataset
from arena.results.documents import LabelSource, RetrievalBoard, retrieval_board
from arena.store import Result, Wanted
from judges.errors import DataError, InputError
from judges.types import Answer, Document, JudgeFailure, Judgment, Query, Retrieved, Task
from tests.support.llm_server import LLMServer
from tests.support.tournaments import configured, write_data
from tests.support.tournaments import run as run_quietly

SETTINGS: dict[str, Any] = {"ratings": {"bootstrap": {"samples": 100}}, "retrieval": {"judge": ["j"], "depth": 9}}
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
    return retrieval_board(
        data(qrels),
        labels,
        StoredSettings.model_validate(SETTINGS | {"retrieval": {**SETTINGS["retrieval"], **settings}}),
    )


def per_query(found: RetrievalBoard, source: LabelSource, agent: str, measure: str) -> tuple[float | None, ...]:
    scores = found.scores[source].scores[measure]
    values = scores.values[scores.agents.index(agent)].tolist()
    return tuple(None if math.isnan(value) else value for value in values)


def test_a_query_on_which_an_agent_failed_is_in_none_of_its_scores() -> None:
    """Were it a 0, ``bad`` would fall to 0.25 for a lost connection; ``good`` found nothing, which is one."""
    whole = data()
    answers = {key: answer for key, answer in whole.answers.items() if key != ("q2", "bad")}
    retrieved = {"q1": whole.retrieved["q1"]}
    agents = [{"name": name, "identity": name} for name in ("bad", "good")]
    settings = StoredSettings.model_validate(
        SETTINGS | {"agents": agents, "retrieval": {"judge": ["j"], "measures": ["RR@5"]}}
    )
    people = {"q1": {"d1": 0, "d2": 1}, "q2": {"d1": 1}}
    failed = replace(whole, answers=answers, retrieved=retrieved, qrels=people)
    found = retrieval_board(failed, LABELS, settings)
    scores = found.scores["judge"]
    assert {agent: own["RR@5"].value for agent, own in scores.estimates.items()} == {"bad": 0.5, "good": 0.5}
    assert [per_query(found, "judge", agent, "RR@5") for agent in ("bad", "good")] == [(0.5, None), (1.0, 0.0)]
    bad, good = (scores.coverage[agent] for agent in ("bad", "good"))
    assert [(own.unasked, own.missing) for own in (bad, good)] == [(("q2",), ()), ((), ("q2",))]
    assert scores.estimates["bad"]["RR@5"].low is None, "one query shows nothing of how scores vary"
    assert found.rankings["RR@5"].swapped == ()
    assert found.failing


def test_a_failed_judgment_is_unjudged_and_not_irrelevant() -> None:
    """Were it a label 0, all would be judged and the mean of ``bad`` would be taken over four."""
    found = board(*LABELS[:3], said("contract", query="q2", doc="d2"), measures=["Judged@5"])
    assert per_query(found, "judge", "bad", "Judged@5") == (1.0, 0.5)
    labels = found.distributions["bad"]
    assert (labels.mean, labels.judged, labels.wanted) == (1.0, 3, 4)
    assert (labels.counts, labels.failed, labels.left) == ({0: 1, 1: 1, 2: 1}, 1, 0)
    assert found.judges["j"].distribution.failed == 1


def test_without_any_label_there_are_no_scores_and_no_error() -> None:
    found = board(said(None), said("contract", doc="d2"))
    assert (found.rankings, found.agreement) == ({}, None)
    own = found.scores["judge"]
    assert [own.estimates[agent]["nDCG@10"].value for agent in ("good", "bad")] == [None, None]
    assert own.scores["nDCG@10"].missing("good") == (2, 2)
    assert (found.judges["j"].distribution.left, found.judges["j"].distribution.failed) == (1, 1)
    assert retrieval_board(data(), [], StoredSettings.model_validate(SETTINGS)) is None


def test_depth_cuts_what_an_agent_retrieved() -> None:
    found = board(said(0, doc="d2"), said(0, query="q2", doc="d2"), said(1), depth=1, measures=["RR@5"])
    assert per_query(found, "judge", "bad", "RR@5") == (0.0, 0.0)


def test_people_s_labels_stand_beside_the_judge_s() -> None:
    people = {"q1": {"d1": 0, "d2": 2, "nobody's": 1}, "q2": {"d1": 1}}
    found = board(*LABELS, qrels=people, measures=["RR@5"])
    assert list(found.scores) == ["judge", "people"]
    assert per_query(found, "people", "good", "RR@5") == (0.5, 0.0)
    assert (found.agreement.n, found.agreement.first_only, found.agreement.second_only) == (3, 1, 1)
    assert found.agreement.confusion == ((0, 0, 1), (0, 1, 0), (1, 0, 0))
    assert found.judges["j"].agreement == found.agreement
    assert list(found.rankings) == ["RR@5"]  # how much is judged ranks nobody
    assert found.rankings["RR@5"].topics == 2


def test_people_s_labels_alone_score_agents_too() -> None:
    found = board(qrels={"q1": {"d1": 3}})
    assert list(found.scores) == ["people"]
    assert found.measures == ("nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "Judged@10")
    assert (found.judges, found.distributions, found.agreement) == ({}, {}, None)


def test_people_s_labels_of_passages_of_answers_are_no_documents_that_somebody_missed() -> None:
    documents = {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}
    with_passages = {"q1": {**documents["q1"], "q1/good#1": 3}, "q2": documents["q2"], "q3": {"q3/shy#1": 1}}
    one, other = (Retrieval(board(*LABELS, qrels=own)).json() for own in (with_passages, documents))
    assert one == other
    assert retrieval_board(data({"q1": {"q1/good#1": 3}}), [], StoredSettings.model_validate(SETTINGS)) is None
    of_a_document = {"q1": {**documents["q1"], "q9/good#1": 3}, "q2": documents["q2"]}
    assert board(*LABELS, qrels=of_a_document) != board(*LABELS, qrels=documents)


def test_several_judges_are_combined_and_compared() -> None:
    second = [said(2, "k"), said(1, "k", doc="d2"), said(1, "k", "q2"), said("contract", "k", "q2", "d2")]
    found = board(*LABELS, *second, combine="mean", measures=["RR@5"])
    assert found.between_judges.documents == 3
    assert {judge: own.distribution.failed for judge, own in found.judges.items()} == {"j": 0, "k": 1}
    assert found.scores["judge"].labels == 4  # of the document that one could not judge, the other's label


def test_documents_that_all_agents_were_given_are_nobody_s_retrieval() -> None:
    shared = Dataset({"q1": Query("q1", "q1")}, {"d1": Document("d1", "d1")}, {("q1", "x"): Answer("q1", "x", "so")},
                     {"q1": (Retrieved("q1", "d1", "", 1),)})  # fmt: skip
    found = retrieval_board(shared, [said(2)], StoredSettings.model_validate(SETTINGS))
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
        (["q9 0 d 1"], "no query id of these qrels is in the data; check that both belong together ('q9')"),
        (["q1 0 d 1.5"], "nDCG stays as it is, and from 1 on is relevant ('1.5')"),
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
