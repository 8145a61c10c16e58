"""RAGElo's pairwise evaluation of the benchmark's games: run by the Python that RAGElo is installed in.

``PYTHON benchmarks/ragelo_peer.py FOLDER BASE_URL CONCURRENCY`` prints one line of JSON: seconds, games that have a
verdict, and RAGElo's version. RAGElo judges both orders of a game by itself and keeps its results in the folder.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    folder, base_url, concurrency = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    os.chdir(folder)
    os.environ["OPENAI_API_KEY"] = "none"
    from ragelo import Experiment, get_answer_evaluator, get_llm_provider

    experiment = Experiment("benchmark", save_path=str(folder / "ragelo.json"), rich_print=False)
    for row in rows("queries.csv"):
        experiment.add_query(row["query"], query_id=row["qid"], should_save=False)
    for row in rows("answers.csv"):
        experiment.add_agent_answer(row["answer"], row["agent"], query_id=row["qid"], should_save=False)
    provider = get_llm_provider("openai", api_base=base_url, api_key="none", model="m")
    evaluator = get_answer_evaluator(
        "pairwise",
        llm_provider=provider,
        n_processes=concurrency,
        use_progress_bar=False,
        include_relevance_reasoning=False,
    )
    started = time.perf_counter()
    evaluator.evaluate_experiment(experiment)
    seconds = time.perf_counter() - started
    games = [game for query in experiment for game in query.pairwise_games.values()]
    judged = sum(bool(game.evaluations) for game in games)
    print(json.dumps({"seconds": seconds, "judged": judged, "version": importlib.metadata.version("ragelo")}))


def rows(name: str) -> list[dict[str, str]]:
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
