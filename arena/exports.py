"""What a tournament holds, as tables for other tools. Failures are not labels: they are left out and can be listed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from arena.dataset import save_dataset
from arena.leaderboard import game_verdicts
from arena.store import Store
from arena.verdicts import write_verdicts
from judges.tables import Cell, write_rows
from judges.types import Judgment, Task


def export_verdicts(store: Store, tournament: str, out: Path) -> int:
    """Every verdict as judged, one row per order shown; returns the number of rows."""
    outcomes = store.outcomes(tournament, Task.PAIRWISE)
    verdicts = list(game_verdicts(outcomes))
    reasons = [result.reason for _, result in outcomes if isinstance(result, Judgment)]
    write_verdicts(out, verdicts, {"reason": reasons})
    return len(verdicts)


def export_labels(store: Store, tournament: str, out: Path) -> int:
    """Relevance labels; trec_eval's ``qid 0 docid label`` where the file ends in ``.qrels``."""
    judged = [
        (want.query_id, want.item, result)
        for want, result in store.outcomes(tournament, Task.RELEVANCE)
        if isinstance(result, Judgment)
    ]
    if out.suffix == ".qrels":
        lines = [f"{query_id} 0 {doc_id} {result.outcome}\n" for query_id, doc_id, result in judged]
        out.write_text("".join(lines), encoding="utf-8")
        return len(lines)
    rows: list[dict[str, Cell]] = [
        {"qid": query_id, "did": doc_id, "label": str(result.outcome), "reason": result.reason}
        for query_id, doc_id, result in judged
    ]
    write_rows(out, ("qid", "did", "label", "reason"), rows)
    return len(rows)


def export_criteria(store: Store, tournament: str, out: Path) -> int:
    """Criteria grades, one row per answer and one column per criterion."""
    rows: list[dict[str, Cell]] = []
    for want, result in store.outcomes(tournament, Task.CRITERIA):
        if isinstance(result, Judgment) and isinstance(result.outcome, Mapping):
            rows.append({"qid": want.query_id, "agent": want.item, **result.outcome, "reason": result.reason})
    names = dict.fromkeys(name for row in rows for name in row if name not in {"qid", "agent", "reason"})
    write_rows(out, ("qid", "agent", *names, "reason"), rows)
    return len(rows)


def export_data(store: Store, tournament: str, out: Path) -> int:
    """Queries, documents and answers as the CSV triple in a folder; returns the number of answers."""
    data = store.dataset(tournament)
    save_dataset(data, out)
    return len(data.answers)
