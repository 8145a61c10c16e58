"""Recorded answers of the TREC 2024 RAG track as a tournament: what do ratings have in common with nugget scores?

``python -m benchmarks.nugget_tournament FOLDER`` plays the 30 runs of ``trec_rag24_nuggets`` against each other, judged
offline by shared words, and prints Bradley-Terry ratings beside V strict by NIST's assessors with their correlation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import closing
from pathlib import Path

from arena.cli.progress import watching
from arena.config.schema import Config, load_config
from arena.run import judging as tournament
from arena.store import Store
from arena.store.outcomes import game_verdicts
from benchmarks.against_ratings import AgainstRatings, against_ratings
from judges.types import Task
from retrieval_eval.nuggets.files import read_assignments
from retrieval_eval.nuggets.scores import score_table

CONFIG = """
name: trec-rag-2024
store: games.db
data: {{queries: '{folder}/topics.tsv', answers: '{folder}/nugget_assignment.jsonl.gz'}}
judges: {{baseline: {{provider: lexical}}}}
pairwise: {{judges: baseline, schedule: {{kind: random, games_per_query: {games}, seed: 0}}}}
"""


def play(folder: Path, games: int, samples: int = 200) -> AgainstRatings:
    """Play so many games per query, each in both orders, and hold the ratings against V strict."""
    assignments = read_assignments([folder / "nugget_assignment.jsonl.gz"])
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "tournament.yaml"
        path.write_text(CONFIG.format(folder=folder.resolve(), games=games), encoding="utf-8")
        config: Config = load_config(path)
        with watching(shown=False) as bars:
            tournament.run(config, bars)
        with closing(Store.open(config.store)) as store:
            verdicts = list(game_verdicts(store.outcomes(config.name, Task.PAIRWISE)))
    return against_ratings(verdicts, score_table(assignments), samples=samples)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=int, default=30, help="per query")
    options = parser.parse_args()
    started = time.perf_counter()
    found = play(options.folder, options.games)
    print(f"{'run':<56} {'rating':>8} {'V strict':>9}")
    for run, rating, score in zip(found.runs, found.ratings, found.scores, strict=True):
        print(f"{run:<56} {rating:8.1f} {score:9.4f}")
    print(f"\n{found.games} games, {time.perf_counter() - started:.0f} s")
    for name, own in (("Kendall's tau", found.correlation.kendall), ("Spearman's rho", found.correlation.spearman)):
        print(f"{name} {own.value:.3f} ({own.low:.3f}..{own.high:.3f}), p {own.p_value:.2g}")


if __name__ == "__main__":
    main()
