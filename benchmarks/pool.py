"""A pool of a million pairs: seconds and memory, beside a loop over plain dictionaries.

Runs are written to files, read back and pooled, each in a process of its own: ``python -m benchmarks.pool``. The bound
is the least that reading and pooling must do in Python: split each line, sort each query, put (query, document) in a
dictionary. It checks nothing and keeps no rank.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path


def write_runs(folder: Path, queries: int, runs: int, depth: int, pairs: int) -> list[Path]:
    """Runs whose pool to ``depth`` has about ``pairs`` pairs, with ids as long as those of MS MARCO V2.1."""
    draw = random.Random(0)
    per_query = pairs // queries
    paths = [folder / f"run{number}.txt" for number in range(runs)]
    files = [path.open("w") for path in paths]
    for query in range(queries):
        ids = [
            f"msmarco_v2.1_doc_{draw.randrange(60):02d}_{query * per_query + at}#3_2210678734"
            for at in range(per_query)
        ]
        for number, file in enumerate(files):
            start = number * (per_query - depth) // max(1, runs - 1)  # neighbours overlap, together they have all
            found = ids[start : start + depth]
            draw.shuffle(found)
            file.writelines(
                f"2024-{query} Q0 {doc_id} {rank} {1000 - rank / 7:.4f} run{number}\n"
                for rank, doc_id in enumerate(found, start=1)
            )
    for file in files:
        file.close()
    return paths


def ours(paths: list[Path], depth: int) -> int:
    from retrieval_eval.data.runs import read_runs
    from retrieval_eval.scores.run_comparison import pool_runs

    return len(pool_runs(read_runs(paths), depth))


def plain(paths: list[Path], depth: int) -> int:
    pool: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        run = defaultdict(list)
        with path.open() as lines:
            for line in lines:
                query_id, _, doc_id, _, score, _ = line.split()
                run[query_id].append((float(score), doc_id))
        for query_id, found in run.items():
            for _, doc_id in sorted(found, reverse=True)[:depth]:
                pool[query_id, doc_id].append(path.name)
    return len(pool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--way", choices=["ours", "plain"])
    parser.add_argument("paths", nargs="*", type=Path)
    given = parser.parse_args()
    if given.way:
        started = time.perf_counter()
        size: float = {"ours": ours, "plain": plain}[given.way](given.paths, given.depth)
        seconds, memory = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(size, seconds, memory)
        return
    with tempfile.TemporaryDirectory() as name:
        paths = write_runs(Path(name), given.queries, given.runs, given.depth, given.pairs)
        print("way       pairs  seconds   MB  seconds / plain")
        found = {}
        for way in ("plain", "ours"):
            command = [sys.executable, "-m", "benchmarks.pool", "--way", way, "--depth", str(given.depth)]
            said = subprocess.run([*command, *map(str, paths)], check=True, capture_output=True, text=True).stdout
            size, seconds, memory = map(float, said.split())
            found[way] = seconds
            print(f"{way:<6} {size:8.0f}  {seconds:7.1f} {memory:4.0f}  {seconds / found['plain']:15.2f}")


if __name__ == "__main__":
    main()
