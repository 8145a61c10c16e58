"""Tables and tournaments drawn, judged and reported by the tool's own functions, and every sentence read."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from arena.boards.calibration import CalibrationBoard
from arena.boards.compare import compare_board
from arena.boards.games import Wins
from arena.boards.gate.compare import compare
from arena.boards.leaderboard import TournamentBoard, with_people
from arena.boards.queries import query_board
from arena.boards.rated_tables import RatedTable, TableOptions, rate_table
from arena.boards.ratings import RatedBoard
from arena.boards.report import TournamentReport, tournament_report
from arena.calibration.comparison import Settings
from arena.config.settings import StoredSettings
from arena.present.blocks import Board, Section
from arena.ratings.games import GameVerdict, as_games, reconcile
from arena.ratings.pairs import win_matrix
from arena.ratings.results import RatingSettings
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.outcomes import Coverage
from arena.results.ratings import Leaderboard, leaderboard, of_group
from arena.results.table_agreement import OpinionFiles, calibrate_tables
from arena.store import Store
from benchmarks.false_sentences import calibrated, judged, page, tournaments, voters
from benchmarks.false_sentences.claims import Seen, read
from benchmarks.false_sentences.sentences import Finding, Result
from benchmarks.false_sentences.worlds import Recount, Row, draw
from judges.types import Task, Verdict

SIDE, FAMILY = 0.025, 0.05
"""Allowed error rate of a one-sided claim (``SIDE``), and of a claim about several agents (``FAMILY``)."""


def search_ratings(found: Result, numbers: Iterable[int], seed: int, samples: int = 200) -> None:
    """Check all that ``rate`` and the report say about these tables."""
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            world, rows = draw(number, seed)
            seen = Seen(world, Recount(rows, named=world.named))
            found.note(f"{number} {world.kind}", _findings(seen, Path(folder) / "table.csv", samples))
            found.worlds["tables of verdicts"] += 1
            _leads(found, seen, world.best)


def _leads(found: Result, seen: Seen, best: str | None) -> None:
    enough = seen.queries >= seen.fewest
    found.leaders += bool(seen.leader)
    found.could_lead += enough and best is not None
    if enough:
        found.claimed("leads", FAMILY, untrue=best is None, said=bool(seen.leader))
    if seen.leader and best is not None:
        found.claimed("leads, not the best", FAMILY, untrue=True, said=seen.leader != best)


def search_votes(found: Result, numbers: Iterable[int], seed: int) -> None:
    """Check all that ``calibrate`` says about these tables of judges and people."""
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            world, *votes = voters.draw(number, seed)
            verdicts = world.level == "verdicts"
            tables = []
            for name, own in zip(("judges", "people"), votes, strict=True):
                voters.write(Path(folder) / f"{name}.csv", own, verdicts=verdicts)
                tables.append(OpinionFiles([Path(folder) / f"{name}.csv"]))
            seen = calibrated.Seen(world, voters.Recount(*votes, verdicts=verdicts))
            board = CalibrationBoard(calibrate_tables(tables[0], tables[1], Settings(samples=50)))
            lines = [line for section in board.sections() for line in page.section_lines(section)]
            found.note(f"votes {number} {world.kind}", calibrated.CALIBRATED.read(seen, lines))
            found.worlds["tables of judges and people"] += 1
            _trusted(found, seen)


def _trusted(found: Result, seen: calibrated.Seen) -> None:
    for judge in seen.world.judges:
        trust, gap = seen.trusted.get(judge), seen.world.gap(judge)
        if trust is None:  # on too few queries
            continue
        found.claimed("more than chance", SIDE, untrue=seen.world.is_chance(judge), said=trust != "chance")
        if gap is not None:
            found.claimed("less than people", SIDE, untrue=gap > -1e-9, said=trust == "less")
            found.claimed("as people", SIDE, untrue=gap < 1e-9 - voters.MARGIN, said=trust == "as people")


def search_tournaments(found: Result, numbers: Iterable[int], seed: int) -> None:
    for number in numbers:
        world = tournaments.draw(number, seed)
        with tempfile.TemporaryDirectory() as folder:
            config = tournaments.run(world, Path(folder))
            with closing(Store.open(config.store)) as store:
                seen = judged.Seen.of(world)
                found.note(f"tournament {number} {world.kind}", of_tournament(seen, store, config.name))
                found.worlds["tournaments"] += 1
                _leads(found, seen.ratings, world.best)
                for score, new, old, verdict in seen.decided:
                    truth = world.truth(score, new, old)
                    found.claimed("better", SIDE, untrue=truth < 1e-9, said=verdict == "better")
                    passed = verdict in ("better", "not worse")
                    found.claimed("not worse", SIDE, untrue=truth < 1e-9 - judged.MARGIN, said=passed)
                    found.claimed("worse", SIDE, untrue=truth > -1e-9, said=verdict == "worse")


def of_tournament(seen: judged.Seen, store: Store, name: str) -> Iterator[Finding]:
    world = seen.world
    for part in (None, *range(len(tournaments.GROUPS) * world.grouped)):
        own = seen if part is None else judged.Seen.of(replace(world, only=part))
        group = None if part is None else ("kind", tournaments.GROUPS[part])
        view = of_group(store, name, group)
        board = with_people(view, leaderboard(view, name))
        yield from _of_board(own, board)
        if board.board.withheld:
            board = with_people(view, leaderboard(view, name, below_coverage=True))
            yield from _of_board(own, board)
        yield from judged.read(own, compare_board(view, name).sentences())
    report = tournament_report(store, name, "STORE")
    yield from judged.read(seen, page.lines(report.page(datetime(2026, 1, 1, tzinfo=UTC))))
    yield from judged.read(seen, _lines(query_board(store, name)))
    chosen = world.failing or world.agents[-1]
    one, other, *_ = (agent for agent in world.agents if agent != chosen)
    looks = ((), (0.5,), (0.5, 1.0))[world.queries // 4 % 3]
    for pair, how in (((one, other), {}), ((chosen, one), {}), ((other, chosen), {"on": "pairwise", "looks": looks})):
        gate = compare(store, name, *pair, **how)  # type: ignore[arg-type]
        seen.pair = pair
        yield from judged.read(
            seen, [*judged.each_score(_lines(gate)), *(score.finding(*pair) for score in gate.scores)]
        )
        yield from judged.finish_gate(seen)
    if world.voters:
        of_people = calibrate_tournament(store, name, resampling_of(store.settings(name)), method_samples=20)
        sections = [
            section for section in CalibrationBoard(of_people).sections() if section.ident in ("people", "coefficients")
        ]
        yield from judged.read(seen, [line for section in sections for line in page.section_lines(section)])


def _of_board(seen: judged.Seen, board: TournamentBoard) -> Iterator[Finding]:
    seen.checks = {}
    lines = list(_lines(board))
    yield from judged.read(seen, lines)
    yield from judged.finish_checks(seen, lines)
    yield from judged.read(seen, (line for section in board.brief() for line in page.section_lines(section)))


def _lines(board: Board) -> Iterator[str]:
    for section in board.sections():
        yield from page.section_lines(section)


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
    verdicts = [
        GameVerdict(row.query, row.first, row.second, _verdict(row, row.first), row.judge) for row in seen.count.rows
    ]
    number = len(verdicts)
    board = Leaderboard(
        "table",
        rated.ratings,
        rated.by_judge,
        (),
        {Task.PAIRWISE: Coverage(number, number, 0, 0, 0)},
        {},
        StoredSettings(),
    )
    pairs = win_matrix(reconcile(verdicts) if seen.count.folds else as_games(verdicts))
    return TournamentReport(
        TournamentBoard(
            board,
            figure=Section("matrix", "", "", [Wins(pairs, [row.agent for row in rated.ratings.agents]).picture()]),
            queries=dict.fromkeys(seen.count.queries, "why?"),
        ),
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
    """Write the table; every third row has its two agents exchanged, and an order that says so."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow([*(["qid"] if seen.count.named else []), "agent_a", "agent_b", "verdict", "judge", "order"])
        for at, row in enumerate(seen.count.rows):
            turned = at % 3 == 2 and row.placed
            a, b = (row.second, row.first) if turned else (row.first, row.second)
            order = ("ba" if turned else "ab") if row.placed else ""
            query = [row.query] if seen.count.named else []
            table.writerow([*query, a, b, _verdict(row, a).value, row.judge, order])
