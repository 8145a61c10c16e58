"""A hundred thousand grades of an exam: seconds and memory of all scores, tables and grids, beside merely reading them.

Grades are put into a store, a table and a file of the workbench's, and taken from each in a process of its own:
``python -m benchmarks.exam``. The bound of each is the least that reading must do in Python: fetch the rows and the
texts of the answers with sqlite3, split the rows with csv, parse the lines with json. It checks nothing and counts
nothing. The bar is 5 s and 1 GB.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

BAR_S, BAR_MB = 5, 1000
AGENTS, PASSAGES, ITEMS = 10, 20, 10
"""Numbers for each query: 2000 pairs of passage and item."""
WORDS = 60
"""Words of a passage."""


def write_data(folder: Path, pairs: int) -> None:
    draw = random.Random(0)
    words = [f"word{number}" for number in range(2000)]
    queries = [f"q{number}" for number in range(-(-pairs // (AGENTS * PASSAGES * ITEMS)))]
    with (folder / "queries.csv").open("w") as file:
        file.writelines(["qid,query\n", *(f"{query_id},what is asked in {query_id}\n" for query_id in queries)])
    with (folder / "bank.csv").open("w") as file:
        rows = (f"{query_id},What is {query_id} of {number}?\n" for query_id in queries for number in range(ITEMS))
        file.writelines(["qid,question\n", *rows])
    with (folder / "answers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", "agent", "answer"])
        for query_id in queries:
            for agent in range(AGENTS):
                texts = (" ".join(draw.choices(words, k=WORDS)) for _ in range(PASSAGES))
                writer.writerow([query_id, f"agent{agent}", "\n\n".join(texts)])


def write_grades(folder: Path) -> int:
    """Grade all pairs at random, into ``exam.db``, ``grades.csv`` and ``graded.jsonl.gz``; returns their number."""
    from arena.config.schema import Config
    from arena.results.exam import exam_study
    from arena.run import judging as tournament
    from arena.run.exam import save_grades
    from arena.stages.together import TournamentStages
    from arena.store import Store, chunks
    from judges.types import Judgment, Task

    config = Config.model_validate(
        {
            "name": "exam",
            "store": str(folder / "exam.db"),
            "data": {name: str(folder / f"{name}.csv") for name in ("queries", "answers")},
            "judges": {"judge": {"provider": "lexical"}},
            "exam": {"judge": "judge", "bank": str(folder / "bank.csv"), "passage_words": WORDS},
        }
    )
    data, draw, pairs = tournament.load_data(config), random.Random(1), 0
    stages = TournamentStages(config, data)
    wants = list(stages.wants())
    with closing(Store.create(config.store)) as store:
        store.begin(config.name, tournament.stored_settings(stages).raw, data, wants)
        for chunk in chunks(wants, 1000):
            graded = [(want, f"{pairs + at:064x}", draw.choice((0, 0, 0, 1, 2, 4, 5))) for at, want in enumerate(chunk)]
            store.save(
                [(Task.GRADING, "p@1", Judgment(ident, grade, "", str(grade), "m")) for _, ident, grade in graded]
            )
            store.assign(config.name, [(want, ident) for want, ident, _ in graded])
            pairs += len(chunk)
        study = exam_study(store, config.name)
        for name in ("grades.csv", "graded.jsonl.gz"):
            save_grades(folder / name, study)
    with (folder / "human.qrels").open("w") as file:
        file.writelines(
            f"{query_id} 0 {passage_id} {draw.randrange(4)}\n"
            for query_id, grid in study.grids.grids.items()
            for passage_id in grid.passages
        )
    return pairs


def of_store(folder: Path) -> None:
    from arena.boards.exam import exam_board
    from arena.results.exam import exam_study, stored_scores
    from arena.store import Store

    with closing(Store.open(str(folder / "exam.db"))) as store:
        scores, study = stored_scores(store, "exam"), exam_study(store, "exam")
    assert scores is not None
    exam_board(scores).json()
    tables(study, folder)


def of_file(name: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        from arena.boards.exam import exam_board
        from arena.results.exam import exam_scores, load_study

        study = load_study(folder / name, bank=folder / "bank.csv")
        exam_board(exam_scores(study)).json()
        tables(study, folder)

    return work


def tables(study: object, folder: Path) -> None:
    from arena.boards.exam import of_labels
    from arena.results.exam import Study
    from retrieval_eval.data.trec import read_qrels
    from retrieval_eval.exam.oversight import graded_answers, grid_rows, influences, spurious_items, uncovered_passages
    from retrieval_eval.exam.scores import exam_labels

    assert isinstance(study, Study)
    people, level = read_qrels(folder / "human.qrels").labels, study.usual_level
    of_labels(exam_labels(study.grids).labels, people, level, 1)
    for query_id in study.grids.grids:
        list(grid_rows(study.grids, query_id))
    list(graded_answers(study.grids, study.graded.answers(study.grader)))
    uncovered_passages(study.grids, people, level=level, relevant=1)
    spurious_items(study.grids, people, level=level, relevant=1)
    influences(study.grids, study.rankings, level=level)


def rows_of_store(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "exam.db")) as connection:
        found = connection.execute(
            "SELECT query_id, item, other, outcome, reply FROM wanted JOIN judgment USING (judgment_id)"
        )
        grades = [
            (query_id, item, json.loads(other), json.loads(outcome)) for query_id, item, other, outcome, _ in found
        ]
        answers = connection.execute("SELECT query_id, agent, text FROM answer").fetchall()
    assert grades
    assert answers


def rows_of_table(folder: Path) -> None:
    with (folder / "grades.csv").open(newline="") as file:
        assert [(row[0], row[1], row[2], row[3]) for row in csv.reader(file)]


def rows_of_workbench(folder: Path) -> None:
    with gzip.open(folder / "graded.jsonl.gz", "rt") as file:
        assert [json.loads(line) for line in file]


WAYS = {
    "store": (rows_of_store, of_store),
    "table": (rows_of_table, of_file("grades.csv")),
    "workbench": (rows_of_workbench, of_file("graded.jsonl.gz")),
}


def peak_mb() -> float:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "SOURCE", "PLACE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder, source, place = given.child
        started = time.perf_counter()
        WAYS[source][int(place)](Path(folder))
        print(time.perf_counter() - started, peak_mb())
        return
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name), given.pairs)
        pairs = write_grades(Path(name))
        print(f"{pairs:,} grades\nsource     way    seconds    MB  seconds / reading  (bar {BAR_S} s, {BAR_MB} MB)")
        for source in WAYS:
            read = 0.0
            for place, way in enumerate(("read", "all")):
                command = [sys.executable, "-m", "benchmarks.exam", "--child", name, source, str(place)]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds, memory = (float(part) for part in said.split())
                read = read or seconds
                met = "" if way == "read" else "met" if seconds < BAR_S and memory < BAR_MB else "missed"
                print(f"{source:<10} {way:<5} {seconds:8.2f} {memory:5.0f}  {seconds / read:17.1f}  {met}")


if __name__ == "__main__":
    main()
