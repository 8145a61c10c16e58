"""Two judges compared by their agreement with the same people on the same items."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.calibration import Opinion
from arena.calibration.comparison import Settings
from arena.calibration.two_judges import compare_judges
from arena.results.table_agreement import compare_opinions
from retrieval_eval.stats.bootstrap import FEW_QUERIES
from tests.conftest import CLI

SIDES = {"1": "A", "2": "B", "": "none"}
Row = Mapping[str, str]


@pytest.fixture(scope="module")
def llmbar(shared: Path) -> tuple[list[Row], dict[str, str]]:
    """Recorded verdicts in both orders, and the better output of each pair."""
    folder = shared / "data/llmbar"
    with (folder / "verdicts_dev.csv").open(newline="", encoding="utf-8") as file:
        rows = [{**row, "qid": f"{row['subset']}-{row['id']}"} for row in csv.DictReader(file)]
    with gzip.open(folder / "instances_dev.jsonl.gz", "rt", encoding="utf-8") as file:
        known = [json.loads(line) for line in file]
    return rows, {f"{row['subset']}-{row['id']}": str(row["label"]) for row in known}


def tables(folder: Path, rows: Iterable[Row], gold: Mapping[str, str]) -> list[Any]:
    """A file for each judge, and people's as the last option; people's rows are repeated for each prompt."""
    files: dict[str, list[list[str]]] = {}
    prompts = dict.fromkeys(row["strategy"] for row in rows)
    for row in rows:
        lines = files.setdefault(row["judge"], [["qid", "prompt", "agent_a", "agent_b", "order", "verdict"]])
        for order, winner in (("ab", row["winner"]), ("ba", row["winner_swapped"])):
            lines.append([row["qid"], row["strategy"], "o1", "o2", order, SIDES[winner]])
    files["people"] = [["qid", "prompt", "agent_a", "agent_b", "verdict"]]
    files["people"] += [[qid, prompt, "o1", "o2", SIDES[label]] for prompt in prompts for qid, label in gold.items()]
    for name, lines in files.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
    paths = [folder / f"{name}.csv" for name in files if name != "people"]
    return [*paths, "--people", folder / "people.csv", "--by", "prompt", "--value", "none=TIE", "--samples", 0]


def pairs(cli: CLI, *arguments: Any) -> list[Any]:
    ended = cli("calibrate", *arguments, "--format", "json")
    assert ended.status == 0, ended.err
    return [
        pair | {"group": comparison["group"]}
        for comparison in json.loads(ended.out)["comparisons"]
        for pair in comparison["pairs"]
    ]


def by_hand(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Difference of the means, and the share of 20,000 random signs that reach it."""
    differences = np.subtract(first, second)
    signs = np.random.default_rng(7).choice([-1, 1], size=(20_000, differences.size))
    reached = np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9
    return float(differences.mean()), float((reached.sum() + 1) / 20_001)


def right(rows: Iterable[Row], gold: Mapping[str, str]) -> dict[str, float]:
    """Share of the two orders in which the better output won; no verdict is none."""
    return {
        row["qid"]: np.mean([row[column] == gold[row["qid"]] for column in ("winner", "winner_swapped")])
        for row in rows
    }


def test_six_judges_pair_by_pair_are_what_a_sign_flip_by_hand_says(
    cli: CLI, tmp_path: Path, llmbar: tuple[list[Row], dict[str, str]]
) -> None:
    rows, gold = llmbar
    subsets = ("Natural", "Adv_Manual")
    chosen = [row for row in rows if row["strategy"] == "Metrics_Reference" and row["subset"] in subsets]
    names = list(dict.fromkeys(row["judge"] for row in chosen))
    shares = {name: right((row for row in chosen if row["judge"] == name), gold) for name in names}
    judged_pairs = pairs(cli, *tables(tmp_path, chosen, gold))
    assert [(pair["first"], pair["second"]) for pair in judged_pairs] == list(combinations(names, 2))
    assert len(judged_pairs) == 15
    expected = [
        by_hand(*([shares[name][qid] for qid in shares[names[0]]] for name in pair)) for pair in combinations(names, 2)
    ]
    for pair, (difference, p) in zip(judged_pairs, expected, strict=True):
        assert pair["difference"] == pytest.approx(difference, abs=2e-6)
        assert pair["first_agreement"] - pair["second_agreement"] == pytest.approx(difference, abs=2e-6)
        assert pair["p"] == pytest.approx(p, abs=0.015)
        assert pair["n"] == pair["queries"] == 146
    ranked = sorted(judged_pairs, key=lambda pair: pair["p"])
    corrected = np.maximum.accumulate([(15 - place) * pair["p"] for place, pair in enumerate(ranked)])
    assert [pair["p_holm"] for pair in ranked] == pytest.approx(np.minimum(1, corrected), abs=2e-5)
    for pair in judged_pairs:
        sure = pair["p_holm"] <= 0.05
        assert (pair["verdict"] in ("better", "worse")) == sure
        assert sure == (not pair["difference_low"] <= 0 <= pair["difference_high"])
        assert pair["verdict"] != "worse" or pair["difference"] < 0
        assert pair["verdict"] != "not worse" or pair["difference_low"] > -0.1
    assert Counter(pair["verdict"] for pair in judged_pairs)["undecided"] == 1


def test_of_ten_prompts_two_chatgpts_differ_on_one(
    cli: CLI, tmp_path: Path, llmbar: tuple[list[Row], dict[str, str]]
) -> None:
    rows, gold = llmbar
    judges = {
        name: {row["strategy"]: [] for row in rows if row["judge"] == "ChatGPT-0301"}
        for name in ("ChatGPT", "ChatGPT-0301")
    }
    chosen = sorted(
        (row for row in rows if row["strategy"] in judges.get(row["judge"], {}) and len(row["subset"]) < 11),
        key=lambda row: row["judge"],
    )
    judged_pairs = pairs(cli, *tables(tmp_path, chosen, gold))
    assert len(judged_pairs) == 10
    assert {(pair["first"], pair["second"]) for pair in judged_pairs} == {("ChatGPT", "ChatGPT-0301")}
    by_prompt = {pair["group"]: pair for pair in judged_pairs}
    assert [name for name, pair in by_prompt.items() if pair["verdict"] in ("better", "worse")] == ["Swap_CoT"]
    assert by_prompt["Swap_CoT"]["verdict"] == "worse"
    assert by_prompt["Swap_CoT"]["difference"] == pytest.approx(-0.103, abs=5e-4)
    assert by_prompt["Swap_CoT"]["p"] < 0.001
    assert by_prompt["Vanilla_NoRules"]["p"] == pytest.approx(0.36, abs=0.015)
    assert sum(pair["p"] < 0.05 for pair in judged_pairs) > 1  # Holm leaves one of these


def test_a_judge_against_itself_is_found_nowhere_and_too_good_only_within_the_margin(
    cli: CLI, tmp_path: Path, llmbar: tuple[list[Row], dict[str, str]]
) -> None:
    rows, gold = llmbar
    of_judge = [row for row in rows if row["judge"] == "PaLM2" and row["strategy"].startswith(("CoT", "Vanilla"))]
    judged_pairs = pairs(cli, *tables(tmp_path, [*of_judge, *({**row, "judge": "twin"} for row in of_judge)], gold))
    assert len(judged_pairs) == 3
    for pair in judged_pairs:
        assert (pair["difference"], pair["p"], pair["p_holm"], pair["verdict"]) == (0, 1, 1, "not worse")
        assert -0.1 < pair["difference_low"] < 0 < pair["difference_high"] < 0.1


def opinions(rng: np.random.Generator, queries: int, items: int = 1, worse: float = 0.0) -> tuple[Any, list[Opinion]]:
    """Two judges of labels 0 and 1 that are right in 7 of 10 cases, the second less by ``worse``."""
    keys = [(f"q{query}", (f"d{item}",)) for query in range(queries) for item in range(items)]
    truth = {key: int(rng.integers(2)) for key in keys}
    said = {
        name: [Opinion(*key, name, float(truth[key] ^ int(rng.random() >= share))) for key in keys]
        for name, share in (("one", 0.7), ("two", 0.7 - worse))
    }
    return [*said["one"], *said["two"]], [Opinion(*key, "ann", float(truth[key])) for key in keys]


def compared(judges: Sequence[Opinion], people: Sequence[Opinion], **settings: Any) -> Any:
    (comparison,) = compare_opinions(
        {("labels", ""): judges}, {("labels", ""): people}, Settings(samples=0, **settings)
    )
    (pair,) = comparison.pairs
    assert not comparison.agreements
    return pair


def test_things_of_one_query_count_as_one() -> None:
    judges, people = opinions(np.random.default_rng(1), 40, worse=0.2)
    again = [
        [vote._replace(item=(f"{vote.item[0]} {copy}",)) for vote in side for copy in range(5)]
        for side in (judges, people)
    ]
    once, repeated = compared(judges, people), compared(*again)
    assert (repeated.n, repeated.queries) == (200, 40)
    assert repeated.difference.low == pytest.approx(once.difference.low)
    assert (repeated.p, repeated.verdict) == (once.p, once.verdict)


def test_only_what_both_judged_counts_and_the_first_named_is_compared_with_the_other() -> None:
    judges, people = opinions(np.random.default_rng(2), 40, worse=0.5)
    judges = [vote for vote in judges if vote.rater == "one" or int(vote.query_id[1:]) < 30]
    pair, turned = compared(judges, people), compared(judges[::-1], people)
    assert (pair.first, pair.n, pair.verdict) == ("one", 30, "better")
    assert (turned.first, turned.n, turned.verdict) == ("two", 30, "worse")
    assert turned.difference.low == pytest.approx(-pair.difference.high)


def test_epsilon_is_the_margin() -> None:
    judges, people = opinions(np.random.default_rng(3), 60)
    pair = compared(judges, people, epsilon=0.02)
    assert pair.verdict == "undecided"
    wide = compared(judges, people, epsilon=min(0.99, 0.01 - pair.difference.low))
    assert (wide.verdict, wide.more) == ("not worse", None)


def test_too_few_queries_tell_nothing(cli: CLI, tmp_path: Path) -> None:
    judges, people = opinions(np.random.default_rng(4), FEW_QUERIES - 1, worse=0.7)
    pair = compared(judges, people)
    assert (pair.verdict, pair.p, pair.p_holm) == ("undecided", None, None)
    for name, side in (("judges", judges), ("people", people)):
        lines = [f"{vote.query_id},{vote.item[0]},{vote.value:g},{vote.rater}\n" for vote in side]
        (tmp_path / f"{name}.csv").write_text("".join(["qid,did,label,judge\n", *lines]))
    ended = cli(
        "calibrate", tmp_path / "judges.csv", "--people", tmp_path / "people.csv", "--column", "people:annotator=judge"
    )
    assert ended.status == 0, ended.err
    assert "too few to tell: fewer than 10 queries" in ended.out


@pytest.mark.parametrize(("folders", "names"), [(False, ["gpt (march)", "gpt (may)"]), (True, None)])
def test_one_judge_in_two_files_of_the_same_things_is_told_apart_by_file(
    cli: CLI, tmp_path: Path, folders: bool, names: list[str] | None
) -> None:
    judges, people = opinions(np.random.default_rng(6), 30, worse=0.6)
    files = {"march": "one", "may": "two", "people": "ann"}
    for name, rater in files.items():
        lines = [f"{vote.query_id},d,{vote.value:g},gpt\n" for vote in [*judges, *people] if vote.rater == rater]
        path = tmp_path / name / "labels.csv" if folders else tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(["qid,did,label,judge\n", *lines]))
        files[name] = str(path)
    (pair,) = pairs(cli, files["march"], files["may"], "--people", files["people"])
    assert [pair["first"], pair["second"]] == (names or [f"gpt ({files['march']})", f"gpt ({files['may']})"])
    assert pair["verdict"] == "better"
    ended = cli("calibrate", files["march"], files["may"], "--people", files["people"])
    assert "each counts as a judge of its own" in ended.out


def test_a_judge_whose_files_hold_other_things_is_one(cli: CLI, tmp_path: Path) -> None:
    judges, people = opinions(np.random.default_rng(6), 30)
    for name, said in (("a", judges[:15]), ("b", judges[15:30]), ("people", people)):
        lines = [f"{vote.query_id},d,{vote.value:g},{vote.rater}\n" for vote in said]
        (tmp_path / f"{name}.csv").write_text("".join(["qid,did,label,judge\n", *lines]))
    paths = [tmp_path / f"{name}.csv" for name in ("a", "b")]
    ended = cli("calibrate", *paths, "--people", tmp_path / "people.csv", "--format", "json")
    (comparison,) = json.loads(ended.out)["comparisons"]
    assert (list(comparison["judges"]), comparison["judges"]["one"]["n"], comparison["pairs"]) == (
        ["one"],
        30,
        [],
    )


def test_two_judges_as_good_are_seldom_found() -> None:
    """400 pairs at once would be corrected together, so each is a call of its own."""
    rng, verdicts = np.random.default_rng(5), Counter[str]()
    for _ in range(150):
        verdicts[compared(*opinions(rng, 20, items=2), epsilon=0.0).verdict] += 1
    assert verdicts["better"] + verdicts["worse"] <= 15  # 5 % of 150, and three standard errors


def test_judges_without_comparisons_are_left_alone() -> None:
    assert compare_judges([], Settings(), []) == ()
