"""Rank correlations, leaderboards and qrels as TREC's ``autojudge-evaluate`` (1.1.0) computes and reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_eval.exam.scores import correlate
from retrieval_eval.stats.rank import head_weighted

TWELVE = (
    [0.35, 0.9, 0.85, 0.2, 0.55, 0.95, 0.75, 1.0, 0.9, 0.1, 0.95, 0.0],
    [0.75, 0.4, 0.85, 0.35, 0.3, 0.75, 0.85, 0.85, 0.75, 0.6, 1.0, 0.2],
)
RECORDED = [
    (
        ([0.9, 0.7, 0.65, 0.4, 0.1], [0.8, 0.85, 0.3, 0.5, 0.2]),
        (0.33333333333333326, 0.2727272727272727, 0.6),
    ),
    (
        ([0.5, 0.5, 0.4, 0.3, 0.3, 0.1], [0.2, 0.4, 0.4, 0.1, 0.3, 0.3]),
        (0.16666666666666663, 0.48571428571428577, 0.23076923076923078),
    ),
    (TWELVE, (0.3487373737373738, 0.28512201106011514, 0.41512834692967865)),
]
"""Scores of runs, true and predicted, and what ``tauap_b``, ``tau_gap`` and ``kendall@10`` of the package gave."""


def _figures(truth: list[float], predicted: list[float]) -> tuple[float | None, ...]:
    taus = head_weighted(np.array(truth), np.array(predicted))
    return taus.tau_ap, taus.tau_gap, taus.tau_at_10


@pytest.mark.parametrize(("scores", "taus"), RECORDED)
def test_correlations_are_those_that_the_package_gave(
    scores: tuple[list[float], list[float]], taus: tuple[float, ...]
) -> None:
    assert _figures(*scores) == pytest.approx(taus, abs=1e-15)
    order = {f"run{at:02}": at for at in range(len(scores[0]))}
    truth, predicted = ({run: -side[at] for run, at in order.items()} for side in scores)
    exam = correlate(dict(reversed(predicted.items())), truth)
    assert (exam.tau_ap, exam.tau_gap, exam.tau_at_10) == pytest.approx(taus, abs=1e-15)


def test_by_hand() -> None:
    """Predicted c, a, b of true a, b, c: no one above a is right, and of those above b the one at a gap of 1 of 3."""
    assert head_weighted(np.array([4.0, 3.0, 1.0]), np.array([2.0, 1.0, 3.0])).tau_gap == pytest.approx(
        2 / 2 * (0 + 1 / 3) - 1
    )
    assert head_weighted(np.array([4.0, 3.0, 1.0]), np.array([2.0, 1.0, 3.0])).tau_ap == pytest.approx(
        ((2 / 2 * (0 + 1 / 2) - 1) + (2 / 2 * (1 + 0) - 1)) / 2
    )


@pytest.mark.parametrize("scores", [([1.0], [2.0]), ([1.0, 1.0], [1.0, 1.0])])
def test_what_is_not_defined_has_no_value(scores: tuple[list[float], list[float]]) -> None:
    assert _figures(*scores) == (None, None, None)


@pytest.fixture
def autojudge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real package, if it is installed; it wants NLTK's list of English stop words, which no function here uses."""
    words = tmp_path / "nltk" / "corpora" / "stopwords"
    words.mkdir(parents=True)
    (words / "english").write_text("the\n", encoding="utf-8")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    return pytest.importorskip("autojudge_evaluate", reason="not installed: pip install autojudge-evaluate")


SCORES = st.lists(st.tuples(*[st.integers(0, 8).map(lambda tenth: tenth / 10)] * 2), min_size=3, max_size=25)


def test_any_correlation_is_that_of_the_package(autojudge: Any) -> None:
    from autojudge_evaluate import evaluation

    @settings(max_examples=300, deadline=None)
    @given(SCORES)
    def check(pairs: list[tuple[float, float]]) -> None:
        truth, predicted = map(list, zip(*pairs, strict=True))
        tau_ap, tau_gap, at_10 = _figures(truth, predicted)
        best = sorted(range(len(truth)), key=lambda at: -truth[at])[:10]
        if tau_ap is not None:
            assert tau_ap == pytest.approx(evaluation.tauap_b(truth, predicted), abs=1e-12)
        assert tau_gap is None or tau_gap == pytest.approx(evaluation.tau_gap(truth, predicted), abs=1e-12)
        theirs = evaluation.correlation([truth[at] for at in best], [predicted[at] for at in best], "kendall")
        assert (np.nan if at_10 is None else at_10) == pytest.approx(theirs, abs=1e-12, nan_ok=True)

    check()


def _exported(cli: Any, folder: Path) -> Path:
    rows = [
        ("q1", "a", 0.5),
        ("q1", "b", 0.25),
        ("q1", "c", 0.75),
        ("q2", "a", 1.0),
        ("q2", "b", 0.0),
        ("q2", "c", 0.5),
    ]
    lines = [json.dumps({"qid": qid, "system": run, "metric": "recall", "value": value}) for qid, run, value in rows]
    (folder / "old.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ended = cli("import", "scores", folder / "old.jsonl", "--store", folder / "old.db")
    assert ended.status == 0, ended.err
    out = folder / "scores.jsonl"
    ended = cli("export", "scores", folder / "old.db", out)
    assert (ended.status, ended.out.split(" written")[0]) == (0, "9 rows"), ended.err
    return out


def test_scores_are_written_by_query_and_their_means_as_all(cli: Any, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in _exported(cli, tmp_path).read_text(encoding="utf-8").splitlines()]
    assert {tuple(row) for row in rows} == {("run_id", "topic_id", "measure", "value")}
    by_key = {(row["run_id"], row["topic_id"]): row["value"] for row in rows}
    assert by_key["b", "q1"] == 0.25
    assert {run: by_key[run, "all"] for run in "abc"} == {"a": 0.75, "b": 0.125, "c": 0.625}


def test_the_package_reads_the_leaderboard_and_qrels(
    cli: Any, tmp_path: Path, autojudge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autojudge_base.qrels.qrels import read_qrel_file
    from autojudge_evaluate.evaluation import LeaderboardEvaluator

    from retrieval_eval.data.trec import write_qrels

    out = _exported(cli, tmp_path)
    evaluator = LeaderboardEvaluator(out, truth_format="jsonl", eval_format="jsonl")
    ((measures, taus),) = evaluator.evaluate(out).items()
    assert measures == ("recall", "recall")
    assert taus["tauap_b"] == taus["tau_gap"] == taus["kendall@10"] == pytest.approx(1)
    write_qrels(tmp_path / "judge.qrels", {"q1": {"d1": 2, "d2": 0}})
    rows = [(row.topic_id, row.doc_id, row.grade) for row in read_qrel_file(tmp_path / "judge.qrels").rows]
    assert rows == [("q1", "d1", 2), ("q1", "d2", 0)]


def test_banks_that_the_package_writes_are_read(tmp_path: Path, autojudge: Any) -> None:
    from autojudge_base import nugget_data

    from retrieval_eval.exam.bank_files import read_bank
    from retrieval_eval.nuggets.files import read_banks

    bank = nugget_data.NuggetBank(query_id="t1", title_query="Pumps")
    question = nugget_data.NuggetQuestion.from_lazy("t1", "What opens?", ["a valve", "the inlet"])
    bank.add_nuggets([question, nugget_data.NuggetClaim.from_lazy("t1", "Noise means a loose bolt.", ["d7"])])
    nugget_data.write_nugget_banks(nugget_data.NuggetBanks.from_banks_list([bank]), tmp_path / "banks.jsonl")
    items = [
        (item.query_id, item.item_type, item.text, item.answers) for item in read_bank(tmp_path / "banks.jsonl").items
    ]
    assert items == [
        ("t1", "question", "What opens?", ("a valve", "the inlet")),
        ("t1", "nugget", "Noise means a loose bolt.", ()),
    ]
    ((nuggets),) = read_banks(tmp_path / "banks.jsonl")
    assert [nugget.text for nugget in nuggets.nuggets] == [
        "What opens? a valve or the inlet",
        "Noise means a loose bolt.",
    ]
