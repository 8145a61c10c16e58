"""Tables drawn, rated and reported by the tool's own functions, and every sentence read."""

from __future__ import annotations

import csv
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

import benchmarks.false_sentences.terminal  # noqa: F401 - teaches its sentences
from arena.boards.coverage import Coverage
from arena.boards.leaderboard import TournamentBoard
from arena.boards.rated_tables import RatedTable, TableOptions, rate_table
from arena.boards.ratings import RatedBoard
from arena.boards.report import TournamentReport
from arena.boards.results import Leaderboard
from arena.boards.wins import Wins
from arena.config.ratings import RatingsSection
from arena.config.stored import StoredSettings
from arena.ratings.games import GameVerdict, as_games, reconcile
from arena.ratings.pairs import pair_results
from arena.ratings.results import RatingSettings
from benchmarks.false_sentences import page
from benchmarks.false_sentences.claims import Seen, read
from benchmarks.false_sentences.recount import Recount, Row
from benchmarks.false_sentences.sentences import Finding
from benchmarks.false_sentences.worlds import draw
from judges.types import Task, Verdict


class Result(Struct):
    """What a search came to.

    Attributes:
        said: sentences by kind.
        false: by kind, the table, the line and what is wrong.
        wrong_leaders: tables in which an agent is said to lead that is not truly best.
    """

    tables: int = 0
    said: Counter[str] = field(default_factory=Counter)
    false: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    leaders: int = 0
    wrong_leaders: int = 0
    could_lead: int = 0
    null: int = 0

    @property
    def allowed(self) -> int:
        """False leaders among the tables without a best agent that chance explains at the level of 5 %."""
        return math.ceil(0.05 * self.null + 2.33 * math.sqrt(0.05 * 0.95 * self.null))

    @property
    def holds(self) -> bool:
        return not any(self.false.values()) and self.wrong_leaders <= self.allowed


def search(numbers: Iterable[int], seed: int, samples: int = 200) -> Result:
    """Read all that is said of these tables, rated with so many bootstrap samples."""
    found = Result()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            world, rows = draw(number, seed)
            seen = Seen(world, Recount(rows, named=world.named))
            _note(found, f"{number} {world.kind}", list(_findings(seen, Path(folder) / "table.csv", samples)))
            found.tables += 1
            found.leaders += bool(seen.leader)
            enough = seen.queries >= seen.fewest
            found.could_lead += enough and world.best is not None
            found.null += enough and world.best is None
            found.wrong_leaders += bool(seen.leader) and seen.leader != world.best
    return found


def _note(found: Result, where: str, findings: Sequence[Finding]) -> None:
    for own in findings:
        found.said[own.kind] += 1
        if own.wrong:
            found.false.setdefault(own.kind, []).append((where, own.line, own.wrong))


def _findings(seen: Seen, file: Path, samples: int) -> Iterator[Finding]:
    _write(file, seen)
    settings = RatingSettings(bootstrap=samples, tournaments=1)
    rated = rate_table(file, settings, TableOptions(by_judge=len(seen.count.judges) > 1))
    of_judge = {
        f"Judge {judge} alone": Seen(seen.world, Recount([r for r in seen.count.rows if r.judge == judge]))
        for judge in seen.count.judges
    }
    for section in RatedBoard(rated).sections():
        yield from read(of_judge.get(section.title, seen), page.section_lines(section))
    if seen.count.named:
        yield from read(seen, page.lines(_report(seen, rated).page(datetime(2026, 1, 1, tzinfo=UTC))))


def _report(seen: Seen, rated: RatedTable) -> TournamentReport:
    """A tournament of these verdicts, as a report reads it from a store."""
    verdicts = [
        GameVerdict(row.query, row.first, row.second, _verdict(row, row.first), row.judge) for row in seen.count.rows
    ]
    number = len(verdicts)
    board = Leaderboard(
        "table",
        rated.ratings,
        rated.by_judge,
        {},
        {Task.PAIRWISE: Coverage(number, number, 0, 0, 0)},
        {},
        StoredSettings({"ratings": RatingsSection().model_dump(mode="json"), "judges": {}}),
    )
    pairs = pair_results(reconcile(verdicts) if seen.count.folds else as_games(verdicts))
    return TournamentReport(
        TournamentBoard(
            board,
            figure=Wins(pairs, [row.agent for row in rated.ratings.agents]).report(),
            queries=dict.fromkeys(seen.count.queries, "why?"),
        ),
        "",
        "STORE",
        dict.fromkeys(("queries", "agents", "answers", "documents", "labels of people"), 1),
        "0",
        "0",
        {"ragleague": "0"},
        {},
    )


def _verdict(row: Row, first: str) -> Verdict:
    return Verdict.TIE if not row.winner else Verdict.A if row.winner == first else Verdict.B


def _write(file: Path, seen: Seen) -> None:
    """The table as a file; every third row has its columns the other way round and says so."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow([*(["qid"] if seen.count.named else []), "agent_a", "agent_b", "verdict", "judge", "order"])
        for at, row in enumerate(seen.count.rows):
            turned = at % 3 == 2 and row.placed
            a, b = (row.second, row.first) if turned else (row.first, row.second)
            order = ("ba" if turned else "ab") if row.placed else ""
            query = [row.query] if seen.count.named else []
            table.writerow([*query, a, b, _verdict(row, a).value, row.judge, order])
