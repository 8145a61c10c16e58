"""The page on six judges: its commands are run on the recorded verdicts and its figures computed again."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from arena.data.verdicts import read_verdicts
from arena.ratings.games import tabulate
from arena.ratings.judges import judged_games
from benchmarks.studies import discriminations, with_words
from retrieval_eval.data.tables import read_rows
from tests.test_docs import ROOT, assert_occur_in_order, blocks, shown

PAGE = ROOT / "benchmarks/studies.md"
PART = "Six judges"
FOLDER = "data/mtbench_multijudge"


def cells(heading: str) -> list[list[str]]:
    """The rows of the page's table that begins so."""
    table = PAGE.read_text(encoding="utf-8").split(heading, 1)[1].split("\n\n", 1)[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def test_commands_of_the_page_say_what_it_shows(cli: Any, shared: Path, tmp_path: Path) -> None:
    with_words(shared / FOLDER, tmp_path / "words.csv")
    entries = [entry for block in blocks(PAGE, PART) if block.language == "text" for entry in shown(block.text)]
    assert len(entries) == 2
    for entry in entries:
        words = entry.command.replace('"', "").replace("$RAGLEAGUE_SHARED", str(shared)).split()
        words = [str(tmp_path / word) if word == "words.csv" else word for word in words]
        assert_occur_in_order(entry, cli(*words[1:]).out)


def test_figures_of_each_judge_are_those_computed(cli: Any, shared: Path) -> None:
    quick = ("--skip-faulty", "--by", "judge", "--samples", "200", "--set", "tournaments=5", "--format", "json")
    told = json.loads(cli("rate", shared / FOLDER / "verdicts.csv", *quick).out)
    computed = []
    for judge, own in told["by_judge"].items():
        health, second = own["judge_health"], own["agents"][1]["agent"]
        shares = [f"{health[name]:.0%}" for name in ("order_agreement", "first_share")]
        computed.append([judge, *shares, f"{health['first_effect']:.0f} points", second])
    assert cells("| judge | order agreement |") == computed
    leaders = {own["agents"][0]["agent"] for own in told["by_judge"].values()}
    assert leaders == {"EXAONE-3.5-7.8B-Instruct"}
    assert len({tuple(row["agent"] for row in own["agents"][4:]) for own in told["by_judge"].values()}) == 1

    ratings = {judge: {row["agent"]: row["bt"] for row in own["agents"]} for judge, own in told["by_judge"].items()}
    every = {row["agent"]: row["bt"] for row in told["agents"]}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    gemma, exaone = "gemma-2-9b-it", "EXAONE-3.5-7.8B-Instruct"
    assert f"rates {ratings['Gemma-4-12B'][gemma]:.0f} where all six together say {every[gemma]:.0f}" in page
    assert f"{ratings['EXAONE-32B'][exaone]:.0f} against {ratings['GPT-4o-mini'][exaone]:.0f}" in page
    gap = every["Phi-3.5-mini-Instruct"] - every["Llama-3.1-8B-Instruct"]
    assert f"twice the {gap:.0f} points between the second agent and the fourth" in page
    tally = told["coverage"]
    assert f"{tally['contradictions']:,} of {tally['both_orders']:,} games" in page
    tied = {judge for judge, own in told["by_judge"].items() if gemma in firsts(own["agents"])}
    assert tied == {"Gemma-4-12B"}
    kappas = sorted((pair["kappa"]["value"], pair["first"], pair["second"]) for pair in told["judges"]["pairs"])
    (low, *least), (high, *most) = kappas[0], kappas[-1]
    assert f"reaches {high:.2f} ({most[0]} and {most[1]}) and falls to {low:.2f} ({least[0]} and {least[1]})" in page


def firsts(agents: list[dict[str, Any]]) -> set[str]:
    return {row["agent"] for row in agents if row["rank_low"] == 1}


def test_weights_of_the_panel_are_those_computed(shared: Path) -> None:
    table = shared / FOLDER / "verdicts.csv"
    found = discriminations(table)
    rows = [[judge, f"{value:.2f}", f"{low:.2f} .. {high:.2f}"] for judge, (value, low, high) in found.items()]
    assert cells("| judge | discrimination |") == rows
    judged = judged_games(tabulate(read_verdicts(table, skip_empty=True).verdicts))
    said = defaultdict(list)
    for game, outcome in zip(judged.game.tolist(), judged.outcome.tolist(), strict=True):
        said[game].append(outcome)
    unanimous = sum(len(each) > 1 and len(set(each)) == 1 for each in said.values())
    assert f"only {unanimous} of {len(said):,} games" in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_sources_own_verdicts_name_the_same_leader_and_the_same_last(shared: Path) -> None:
    finals = [row.text("final") for row in read_rows(shared / FOLDER / "verdicts.csv")]
    wins = Counter(final for final in finals if final not in {"tie", "inconsistent", "error"})
    order = [agent for agent, _ in wins.most_common()]
    (block, *_) = (block for block in blocks(PAGE, PART) if block.language == "text")
    assert order == re.findall(r"^(\S+) +[1-6] +\d", block.text, flags=re.MULTILINE)
