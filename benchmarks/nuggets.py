"""How long recorded assignments take to score, beside merely parsing their lines as JSON in the same run.

``python -m benchmarks.nuggets --topics 1000 --runs 100 --nuggets 20`` writes assignments with answers of 100 words,
then reads and scores them with intervals.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import score_table
from retrieval_eval.nuggets.types import Importance, Support


def write_assignments(path: Path, topics: int, runs: int, nuggets: int) -> None:
    rng = random.Random(0)
    words = [f"word{number}" for number in range(2000)]
    labels = list(Support)
    with path.open("w", encoding="utf-8") as file:
        for topic in range(topics):
            bank = [(" ".join(rng.choices(words, k=7)), rng.choice(list(Importance))) for _ in range(nuggets)]
            for run in range(runs):
                given = [{"text": text, "importance": own, "assignment": rng.choice(labels)} for text, own in bank]
                answer = " ".join(rng.choices(words, k=100))
                record = {"qid": f"q{topic}", "run_id": f"run{run}", "answer_text": answer, "nuggets": given}
                file.write(json.dumps(record) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--nuggets", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "assignments.jsonl"
        write_assignments(path, options.topics, options.runs, options.nuggets)
        start = time.process_time()
        with path.open(encoding="utf-8") as file:
            for line in file:
                json.loads(line)
        parsed = time.process_time()
        assignments = read_assignments([path])
        read = time.process_time()
        scored = score_table(assignments).best_first()
        done = time.process_time()
        megabytes = path.stat().st_size / 1e6
    print(f"{len(assignments)} assignments of {options.nuggets} nuggets, {len(scored)} runs, {megabytes:.0f} MB")
    print(
        f"json.loads alone {parsed - start:.1f} s; read and checked {read - parsed:.1f} s; scored {done - read:.1f} s"
    )


if __name__ == "__main__":
    main()
