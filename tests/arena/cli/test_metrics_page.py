"""The page on runs and labels: what it shows of recorded data is run and computed again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from tests.test_docs import ROOT, assert_occur_in_order, blocks, shown

PAGE = ROOT / "benchmarks/studies.md"
PART = "Runs and labels"


def words(command: str, shared: Path) -> list[str]:
    """The words of a command, patterns spread as a shell does."""
    found: list[str] = []
    for word in shlex.split(command.replace("$RAGLEAGUE_SHARED", str(shared))):
        folder, _, pattern = word.rpartition("/")
        found += [str(path) for path in sorted(Path(folder).glob(pattern))] if "*" in pattern else [word]
    return found


def test_commands_of_the_page_say_what_it_shows(cli: Any, shared: Path) -> None:
    recorded = [block for block in blocks(PAGE, PART) if block.language == "text" and block.file is None]
    entries = [entry for block in recorded for entry in shown(block.text)]
    assert len(entries) == 2
    for entry in entries:
        ended = cli(*words(entry.command, shared)[1:])
        assert ended.status == entry.status
        assert_occur_in_order(entry, ended.out)


def test_what_the_page_says_of_a_judge_is_computed(cli: Any, shared: Path) -> None:
    folder = shared / "data/llmjudge24"
    sets = sorted((folder / "llm_qrels").iterdir())
    told = json.loads(
        cli("calibrate", *sets, "--people", folder / "human.qrels", "--samples", "0", "--format", "json").out
    )["sets"]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    least = min(told, key=lambda name: told[name]["kappa"])
    assert f"The judge that agrees least, `{least}`" in page
    assert told[least]["alpha"] < 0
    relevant = told[least]["binarised"][0]
    theirs, ours = relevant["both"] + relevant["second_only"], relevant["both"] + relevant["first_only"]
    assert f"calls {theirs:,} of {told[least]['n']:,} passages relevant, where people say so of {ours:,}" in page
    assert f"By plain kappa `{max(told, key=lambda name: told[name]['kappa'])}` leads" in page


def test_ties_are_worth_less_than_the_page_says(shared: Path) -> None:
    from retrieval_eval.data.runs import read_run
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.metrics import evaluate

    folder = shared / "data/cranfield"
    run = read_run(folder / "runs/tf_overlap.run")
    broken = {
        query_id: {doc_id: -float(rank) for rank, doc_id in enumerate(ranking.doc_ids)}
        for query_id, ranking in run.rankings.items()
    }
    measures = ["nDCG@10", "RR(rel=1)@5", "RR(rel=2)@5", "Judged@10"]
    found = evaluate(read_qrels(folder / "qrels.txt").labels, {"raw": run.scores(), "broken": broken}, measures)
    moved = [abs(found.value("raw", measure) - found.value("broken", measure)) for measure in measures]
    assert moved[0] == 0
    assert 0 < max(moved) < 0.001
