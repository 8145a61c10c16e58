"""The page on calibration: its commands are run on recorded judgments and its figures held against the sources."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from arena.people.calibrate import calibrate_tables
from benchmarks.studies import a_quarter, llmbar_tables
from retrieval_eval.data.tables import read_rows
from tests.test_docs import ROOT, assert_occur_in_order, blocks, shown

PAGE = ROOT / "benchmarks/studies.md"
PART = "People and judges"
COMMANDS = [entry for block in blocks(PAGE, PART) if block.language == "text" for entry in shown(block.text)]


@pytest.fixture(scope="module")
def made(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tables that ``benchmarks.studies`` makes."""
    folder = tmp_path_factory.mktemp("made")
    a_quarter(shared / "data/mtbench_human/human_votes.csv", folder / "few.csv")
    llmbar_tables(shared / "data/llmbar", folder / "verdicts.csv", folder / "gold.csv")
    return folder


@pytest.fixture(scope="module", autouse=True)
def compared_once() -> Iterator[None]:
    """Most commands of the page are read twice, as text and as JSON: the tables behind them are compared once."""
    known: dict[str, Any] = {}

    def compared(*tables: Any, **how: Any) -> Any:
        asked = repr((tables, how))
        if asked not in known:
            known[asked] = calibrate_tables(*tables, **how)
        return known[asked]

    with patch("arena.people.calibrate.calibrate_tables", compared):
        yield


def arguments(command: str, shared: Path, folder: Path) -> list[str]:
    words = shlex.split(command.replace("$RAGLEAGUE_SHARED", str(shared)))[1:]
    return [str(folder / word) if word in {"verdicts.csv", "gold.csv", "few.csv"} else word for word in words]


def told(cli: Any, *words: Any) -> Any:
    return json.loads(cli("calibrate", *words, "--format", "json").out)


@pytest.mark.parametrize("entry", COMMANDS, ids=range(len(COMMANDS)))
def test_commands_of_the_page_say_what_it_shows(entry: Any, cli: Any, shared: Path, made: Path) -> None:
    assert_occur_in_order(entry, cli(*arguments(entry.command, shared, made)).out)


def test_llmbar_gives_the_published_accuracy_and_swap_agreement(cli: Any, shared: Path, made: Path) -> None:
    files = made / "verdicts.csv", "--people", made / "gold.csv", "--by", "subset", "--skip-faulty"
    found = {one["group"]: one["judges"] for one in told(cli, *files)["comparisons"]}
    empty: Counter[tuple[str, str]] = Counter()
    for row in read_rows(made / "verdicts.csv"):
        if not row.text("verdict"):
            empty[row.text("subset"), row.text("judge")] += 1
    with (shared / "data/llmbar/published_statistics_dev.csv").open(encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 146
    for row in published:
        judge = f"{row['judge']} {row['strategy']}"
        own = found[row["subset"]][judge]
        pairs = int(re.fullmatch(r"\d+ / (\d+) = .*", row["equal"])[1])  # type: ignore[index]
        # The source counts a verdict that it could not read as wrong; here it is left out.
        right = own["vote_agreement"] * own["vote_pairs"]
        assert right / (2 * pairs) == pytest.approx(float(row["correct_average"].rstrip("%")) / 100, abs=1e-4)
        if not empty[row["subset"], judge]:
            assert own["vote_pairs"] == 2 * pairs
            assert f"{own['order_agreement'] * pairs:.0f}" == row["equal"].split()[0]


def test_mtbench_agreement_is_that_of_counting_pairs_of_votes(cli: Any, shared: Path) -> None:
    folder = shared / "data/mtbench_human"
    found = told(cli, folder / "gpt4_verdicts.csv", "--people", folder / "human_votes.csv", "--item", "turn")[
        "comparisons"
    ][0]
    people, judge = found["people"], found["judges"]["gpt4_pair"]
    votes: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in read_rows(folder / "human_votes.csv"):
        votes[key(row)].append(row.text("winner"))
    gpt4 = [
        (key(row), row.text("winner").removesuffix(" (inconsistent)"))
        for row in read_rows(folder / "gpt4_verdicts.csv")
    ]
    both = [(said, vote) for thing, said in gpt4 for vote in votes[thing]]
    within = [pair for own in votes.values() for pair in combinations(own, 2)]
    for pairs, named in ((both, judge["vote_agreement"]), (within, people["same"])):
        assert named == pytest.approx(share(pairs), abs=0.003)  # one expert voted twice on one thing
    assert judge["decided_vote_agreement"] == pytest.approx(share(decided(both)), abs=0.003)
    assert people["same_decided"] == pytest.approx(share(decided(within)), abs=0.003)


def test_mtbench_setups_and_kappa_are_counted_over_single_votes(cli: Any, shared: Path) -> None:
    folder = shared / "data/mtbench_human"
    files = folder / "gpt4_verdicts.csv", "--people", folder / "human_votes.csv", "--item", "turn", "--against", "votes"
    (found,) = told(cli, *files)["comparisons"]
    judge = found["judges"]["gpt4_pair"]
    gpt4 = {
        key(row): row.text("winner").removesuffix(" (inconsistent)") for row in read_rows(folder / "gpt4_verdicts.csv")
    }
    votes = [(key(row), row.text("winner")) for row in read_rows(folder / "human_votes.csv")]
    both = [(gpt4[thing], vote) for thing, vote in votes if thing in gpt4]
    # Zheng et al. 2023: setup 1 counts ties, setup 2 leaves them out.
    assert judge["vote_pairs"] == len(both)
    assert judge["vote_agreement"] == pytest.approx(share(both), abs=1e-6)
    assert judge["agreement"] == pytest.approx(share(both), abs=1e-6)
    assert judge["decided_vote_pairs"] == len(decided(both))
    assert judge["decided_vote_agreement"] == pytest.approx(share(decided(both)), abs=1e-6)
    other = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    turned = [(other[one], other[two]) for one, two in both]
    assert judge["kappa"] == pytest.approx(kappa([*both, *turned]), abs=1e-6)
    assert judge["kappa_low"] < judge["kappa"] < judge["kappa_high"]
    (as_written,) = told(cli, *files, "--as-games")["comparisons"]
    assert as_written["judges"]["gpt4_pair"]["kappa"] == pytest.approx(kappa(both), abs=1e-6)


def test_crowdrag_kappa_is_counted_over_ordered_pairs(cli: Any, shared: Path) -> None:
    folder = shared / "data/crowdrag25"
    human = "--people", folder / "human_gold.csv.gz", "--column", "people:verdict=gold"
    names = "--column", "judge=mode", "--by", "dimension", "--skip-faulty", "--as-games"
    found = {one["group"]: one for one in told(cli, folder / "llm_verdicts.csv.gz", *human, *names)["comparisons"]}
    gold = {ordered(row): row.text("gold") for row in read_rows(folder / "human_gold.csv.gz")}
    said: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in read_rows(folder / "llm_verdicts.csv.gz"):
        if row.text("mode") == "combined" and row.text("verdict"):
            said[ordered(row)][row.text("verdict")] += 1
    for dimension, one in found.items():
        # Some pairs were asked about several times: most replies decide, and where none leads it is a tie.
        pairs = [
            (most[0][0] if len(most := own.most_common(2)) == 1 or most[0][1] > most[1][1] else "n", gold[thing])
            for thing, own in said.items()
            if thing in gold and thing[-1] == dimension
        ]
        judge = one["judges"]["combined"]
        assert judge["n"] == len(pairs)
        assert judge["agreement"] == pytest.approx(share(pairs), abs=1e-6)
        assert judge["kappa"] == pytest.approx(kappa(pairs), abs=1e-6)


def ordered(row: Any) -> tuple[str, ...]:
    return tuple(row.text(name) for name in ("qid", "agent_a", "agent_b", "dimension"))


def kappa(pairs: list[tuple[str, str]]) -> float:
    """Cohen's, by its definition."""
    one, two = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(one[label] * two[label] for label in one) / len(pairs) ** 2
    return (share(pairs) - chance) / (1 - chance)


def key(row: Any) -> tuple[str, ...]:
    return tuple(row.text(name) for name in ("question_id", "turn", "model_a", "model_b"))


def share(pairs: list[tuple[str, str]]) -> float:
    return sum(one == other for one, other in pairs) / len(pairs)


def decided(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [pair for pair in pairs if "tie" not in pair]


def test_gpt35_prefers_the_left_answer_and_the_crowd_hardly_does(cli: Any, shared: Path) -> None:
    folder = shared / "data/llmfao"
    judges = folder / "gpt4_verdicts.csv", folder / "gpt3_verdicts.csv"
    found = told(cli, *judges, "--people", folder / "crowd_votes.csv")["comparisons"][0]
    sides = Counter(row.text("winner") for row in read_rows(judges[1]))
    gpt35 = found["judges"]["gpt3_verdicts"]
    assert gpt35["first_share"] == pytest.approx(sides["left"] / (sides["left"] + sides["right"]), abs=1e-6)
    assert 0.68 < gpt35["first_share"] < 0.74
    assert gpt35["first_share_low"] > 0.6
    assert found["people"]["first_share_low"] < 0.5 < found["people"]["first_share_high"]


def test_alpha_of_crowdrag_is_that_of_an_independent_library(cli: Any, shared: Path) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    folder = shared / "data/crowdrag25"
    human = folder / "human_votes.csv.gz"
    names = ("--column", "judge=mode", "--by", "dimension", "--skip-faulty")
    found = {
        one["group"]: one for one in told(cli, folder / "llm_verdicts.csv.gz", *names, "--people", human)["comparisons"]
    }
    assert len(found) == 7
    counts: defaultdict[str, defaultdict[tuple[str, ...], Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    spam: dict[str, float] = {}
    seen = set()
    for row in read_rows(human):
        a, b = row.text("agent_a"), row.text("agent_b")
        spam[row.text("worker")] = float(row.text("spam_probability"))
        thing = (row.text("qid"), *sorted((a, b)))
        seen.add((row.text("dimension"), *thing, row.text("worker")))
        vote = row.text("vote")
        own = counts[row.text("dimension")]
        own[*thing, "as written"][vote if a < b else swapped(vote)] += 1
        own[*thing, "mirrored"][swapped(vote) if a < b else vote] += 1
    for dimension, own in found.items():
        # The same votes, each thing as written and mirrored: alpha as a library without symmetry has it.
        table = [[things[side] for side in "anb"] for things in counts[dimension].values()]
        alpha = krippendorff.alpha(value_counts=table, level_of_measurement="nominal")
        assert own["people"]["alpha"] == pytest.approx(alpha, abs=0.003)  # four workers voted on both orders of a pair
    overall = found["quality_overall"]["people"]["annotators"]
    suspects = [spam[one["rater"]] for one in overall if one["above_chance"] is False and one["kappa"] < 0]
    trusted = [spam[one["rater"]] for one in overall if one["above_chance"]]
    assert sum(suspects) / len(suspects) > sum(trusted) / len(trusted) + 0.2


def swapped(vote: str) -> str:
    return {"a": "b", "b": "a"}.get(vote, vote)
