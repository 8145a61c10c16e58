"""The tables that the studies need besides the recorded ones: ``python -m benchmarks.studies SHARED OUT``."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from pathlib import Path
from typing import Any, Final


def with_words(folder: Path, table: Path) -> None:
    words = {}
    for answer in read_lines(folder / "answers.jsonl.gz"):
        words[str(answer["question_id"]), answer["model"]] = sum(len(turn.split()) for turn in answer["turns"])
    with (folder / "verdicts.csv").open(newline="", encoding="utf-8") as source:
        games = list(csv.DictReader(source))
    for game in games:
        game["words_a"] = words[game["question_id"], game["model_a"]]
        game["words_b"] = words[game["question_id"], game["model_b"]]
    with table.open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, list(games[0]))
        writer.writeheader()
        writer.writerows(games)


def a_quarter(votes: Path, few: Path) -> None:
    with votes.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    things = sorted({(row["question_id"], row["turn"], row["model_a"], row["model_b"]) for row in rows})
    drawn = set(random.Random(0).sample(things, len(things) // 4))
    with few.open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, list(rows[0]))
        writer.writeheader()
        for row in rows:
            if (row["question_id"], row["turn"], row["model_a"], row["model_b"]) in drawn:
                writer.writerow(row)


SUBSETS: Final = ("Natural-", "Adv_Manual-")
"""Subsets of LLMBar with every judge's verdicts."""


def llmbar_tables(folder: Path, verdicts: Path, gold: Path, panel: Path) -> None:
    """Write all verdicts, people's, and those of the six models with one prompt."""
    sides = {"1": "A", "2": "B", "": ""}
    with (folder / "verdicts_dev.csv").open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    with verdicts.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["qid", "subset", "judge", "agent_a", "agent_b", "order", "verdict"])
        for row in rows:
            named = [f"{row['subset']}-{row['id']}", row["subset"], f"{row['judge']} {row['strategy']}"]
            writer.writerow([*named, "output_1", "output_2", "ab", sides[row["winner"]]])
            writer.writerow([*named, "output_1", "output_2", "ba", sides[row["winner_swapped"]]])
    head, *lines = verdicts.read_text(encoding="utf-8").splitlines(keepends=True)
    with panel.open("w", newline="", encoding="utf-8") as target:
        target.writelines(
            [head, *(line for line in lines if line.startswith(SUBSETS) and " Metrics_Reference," in line)]
        )
    with gold.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["qid", "subset", "agent_a", "agent_b", "verdict"])
        for pair in read_lines(folder / "instances_dev.jsonl.gz"):
            qid = f"{pair['subset']}-{pair['id']}"
            writer.writerow([qid, pair["subset"], "output_1", "output_2", sides[str(pair["label"])]])


def read_lines(path: Path) -> list[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path, help="the folder that RAGLEAGUE_SHARED names")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    data = given.shared / "data"
    given.out.mkdir(parents=True, exist_ok=True)
    with_words(data / "mtbench_multijudge", given.out / "words.csv")
    a_quarter(data / "mtbench_human/human_votes.csv", given.out / "few.csv")
    llmbar_tables(data / "llmbar", given.out / "verdicts.csv", given.out / "gold.csv", given.out / "panel.csv")


if __name__ == "__main__":
    main()
