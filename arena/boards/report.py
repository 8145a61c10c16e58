"""A tournament as one page: its leaderboard with all that stands beside it, and where its figures come from."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import asdict, replace

from arena.boards.calibration.board import CalibrationBoard
from arena.boards.card import judge_cards
from arena.boards.compare import compare_board
from arena.boards.conclusion import expectation
from arena.boards.leaderboard import TournamentBoard, judged_on
from arena.config.settings import StoredSettings
from arena.config.stages import TASKS
from arena.data.dataset import texts_of
from arena.present.blocks import Block, Board, Commands, Remarks, Section, Thread
from arena.present.numbers import COUNT, MISSING, MONEY, POINTS
from arena.present.picture import Chart, Whiskers
from arena.present.report import MARK, Report, render
from arena.present.table import Column, Table
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.cache import cached_leaderboard
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, Message, Query, Task, Usage
from retrieval_eval.data.files import open_binary, open_replacing

JudgedWants: TypeAlias = Sequence[tuple[Wanted, Result | None]]

_PACKAGES: Final = ("ragleague", "numpy", "scipy", "ir-measures")
"""Whose versions may change a figure."""
_SECTIONS: Final = ("pairwise", "retrieval", "criteria", "exam", "nuggets", "agents", "ratings", "prompts")
"""Of the settings, in the order in which they are shown; any other comes behind."""
_EFFORT: Final = (
    Column("judge", "Judge"),
    Column("task", "Stage"),
    Column("models", "Model that replied"),
    Column("judgments", "Judgments", COUNT),
    Column("failed", "Failed", COUNT),
    Column("calls", "Calls", COUNT),
    Column("input_tokens", "Tokens in", POINTS),
    Column("output_tokens", "Tokens out", POINTS),
    Column("cost_usd", "Cost", MONEY),
)


class TournamentReport(Board, frozen=True):
    """All that a report shows.

    Attributes:
        shown: the leaderboard and what stands beside it.
        judged: when, as words; empty where nobody knows.
        source: the configuration or store, as it may be shown.
        counts: of the data: queries, documents, answers, agents, labels of people.
        data_digest: SHA-256 of the data, see ``arena.data.dataset.Dataset.digest``.
        results_digest: SHA-256 of the ids and outcomes of everything judged.
        versions: of what computed the figures.
        queries: by id.
    """

    shown: TournamentBoard
    judged: str
    source: str
    counts: Mapping[str, int]
    data_digest: str
    results_digest: str
    versions: Mapping[str, str]
    queries: Mapping[str, Query]

    def sections(self) -> list[Section]:
        """The leaderboard's without what stands on top of the page; then settings and origin."""
        board, settings = self.shown.board, self.shown.board.settings
        found = {section.ident: section for section in self.shown.sections() if section.ident != "conclusion"}
        if board.ratings is not None:
            said = Remarks([*expectation(board.ratings, self.shown.conclusion)])
            blocks = found["leaderboard"].blocks
            named = [row["query"] for each in blocks if isinstance(each, Table) for row in each.rows if "query" in row]
            longest = {
                each.cluster: each for each in sorted(self.queries.values(), key=lambda each: len(each.messages))
            }
            threads = [
                Thread((*last.messages, Message("user", last.text)), f"Conversation {name}")
                for name in named
                if (last := longest.get(name)) is not None and last.messages
            ]
            found["leaderboard"] = replace(found["leaderboard"], blocks=[*blocks, *threads, said])
        on_top: dict[str, type] = {"leaderboard": Whiskers, "costs": Chart}
        for ident, drawn in on_top.items():
            if ident in found:
                blocks = [block for block in found[ident].blocks if not isinstance(block, drawn)]
                found[ident] = replace(found[ident], blocks=blocks)
        lead = "What decided the results, as it was stored with the tournament. Keys are never stored."
        return [
            *found.values(),
            Section("settings", "Settings, prompts and models", lead, [*_judges(settings), *_settings(settings)]),
            self._reproduce(),
        ]

    def page(self, made: datetime, link: Callable[[str], str] | None = None) -> Report:
        """The page, made at this time in UTC; ``link`` gives the address of an agent, by its name."""
        return Report(
            self.shown.board.tournament,
            self.shown.opening(self.counts["queries"], self.judged, checks="#trust", link=link),
            self.sections(),
            f"{made:%Y-%m-%d %H:%M} UTC by ragleague {self.versions['ragleague']}",
        )

    def _reproduce(self) -> Section:
        board = self.shown.board
        identity = {
            "Data": ", ".join(f"{count:,} {what}" for what, count in self.counts.items()),
            "Digest of the data (SHA-256)": self.data_digest,
            "Digest of all judgments (SHA-256)": self.results_digest,
            "Seed of ratings and intervals": _plain(board.settings.ratings.seed),
            **self.versions,
        }
        rows = [{"what": what, "value": value} for what, value in identity.items()]
        chosen = [] if self.source.endswith((".yaml", ".yml")) else ["--tournament", board.tournament]
        blocks: list[Block] = [
            Table("identity", "Identity", [Column("what", "What"), Column("value", "Value")], rows),
            Commands(
                [shlex.join(["ragleague", one, self.source, *chosen]) for one in ("leaderboard", "report", "failures")]
            ),
            Remarks(
                [
                    "The same store gives the same figures, whatever the machine: all draws are seeded. With the same "
                    "data, prompts and models a new run asks nothing that the store knows.",
                    "Two stores with equal digests hold the same texts and the same judgments.",
                ]
            ),
        ]
        lead = "From the store that this report was made of."
        return Section("reproduce", "How to get these figures again", lead, blocks)


def tournament_report(store: Store, tournament: str, source: str, *, below_coverage: bool = False) -> TournamentReport:
    """Read a tournament for its report.

    Args:
        store: where it is.
        tournament: its name.
        source: the configuration or store, as it may be shown.
        below_coverage: as for ``leaderboard``.
    """
    board = cached_leaderboard(store, tournament, below_coverage=below_coverage)
    data = store.dataset(tournament)
    outcomes = [entry for task in TASKS for entry in store.outcomes(tournament, task)]
    compared = compare_board(store, tournament)
    calibration = calibrate_tournament(store, tournament, resampling_of(board.settings), label_next=0)
    cards = []
    if calibration.comparisons or "card" in board.settings.raw:
        cards = [*judge_cards(board, calibration, datetime.now(UTC).date()).sections()]
    shown = TournamentBoard(
        board,
        calibration.comparisons,
        calibration.apart,
        compared.report() if compared.ways else None,
        queries=texts_of(data.queries.values()),
        failures=Counter((want.task, want.judge, own.cause) for want, own in outcomes if isinstance(own, JudgeFailure)),
        effort=_effort(outcomes),
        calibration=[*cards, *CalibrationBoard(calibration).sections()],
    )
    counts = {
        "queries": len(data.queries),
        "agents": len(data.agents),
        "answers": len(data.answers),
        "documents": len(data.documents),
        "labels of people": sum(map(len, data.qrels.values())),
    }
    versions = {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}}
    return TournamentReport(
        shown, judged_on(store, tournament), source, counts, data.digest(), _digest(outcomes), versions, data.queries
    )


def write_report(
    store: Store, tournament: str, out: Path, source: str, *, below_coverage: bool = False, force: bool = False
) -> tuple[TournamentReport, int]:
    """Write a tournament's report as one HTML file; the report and the number of bytes.

    Args:
        store: where the tournament is.
        tournament: its name.
        out: the file; a report that is there is replaced.
        source: the configuration or store, as it may be shown.
        below_coverage: as for ``leaderboard``.
        force: replace any other file as well.

    Raises:
        InputError: a file that is no report stands there, or its name is not that of a page.
    """
    if not force:
        _refuse_to_replace(out)
    report = tournament_report(store, tournament, source, below_coverage=below_coverage)
    page = render(report.page(datetime.now(UTC))).encode()
    with open_replacing(out) as file:
        file.write(page)
    return report, len(page)


def _refuse_to_replace(out: Path) -> None:
    """Raise an error where a file stands that no report was written to, such as a store named by mistake."""
    if out.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"{out}: give the report a name that ends in .html, or --force")
    if not out.exists():
        return
    with open_binary(out) as there:
        if there.read(len(MARK)) != MARK.encode():
            raise InputError(f"{out}: a file that is no report stands there; choose another name, or --force")


def _effort(outcomes: JudgedWants) -> list[Table]:
    """What each judge was asked for each stage, and what it took, as far as servers said; nothing before that."""
    asked: defaultdict[tuple[Task, str], dict[str, Result]] = defaultdict(dict)
    for want, result in outcomes:
        if result is not None and result.judgment_id != IDENTICAL:
            asked[want.task, want.judge][result.judgment_id] = result
    rows = []
    for (task, judge), by_id in asked.items():
        results = by_id.values()
        judgments, costs = sum(isinstance(own, Judgment) for own in results), [own.cost_usd for own in results]
        models = Counter(own.model or "unknown" for own in results).most_common()
        rows.append(
            {
                "judge": judge,
                "task": task,
                "models": [f"{model} ({COUNT.write(count)})" for model, count in models],
                "judgments": judgments,
                "failed": len(results) - judgments,
                "calls": sum(own.calls for own in results),
                **asdict(sum((own.usage for own in results), Usage())),
                "cost_usd": None if None in costs else sum(filter(None, costs)),
            }
        )
    notes = ["A judgment that several games share, because their texts are the same, was paid for and counts once."]
    return [Table("effort", "What was asked", _EFFORT, rows, notes)] if rows else []


def _digest(outcomes: JudgedWants) -> str:
    said = {
        f"{own.judgment_id} "
        + (json.dumps(own.outcome, sort_keys=True) if isinstance(own, Judgment) else f"failed {own.cause}")
        for _, own in outcomes
        if own is not None
    }
    return hashlib.sha256("\n".join(sorted(said)).encode()).hexdigest()


def _judges(settings: StoredSettings) -> Iterator[Table]:
    if judges := settings.raw.get("judges") or {}:
        names = dict.fromkeys(name for own in judges.values() for name, value in own.items() if value not in (None, ""))
        rows = [
            {"setting": name} | {f"of {judge}": _plain(own.get(name)) for judge, own in judges.items()}
            for name in names
        ]
        columns = [Column("setting", "Setting"), *(Column(f"of {judge}", judge) for judge in judges)]
        yield Table("judge-settings", "Judges", columns, rows)


def _settings(settings: StoredSettings) -> Iterator[Table]:
    named = settings.shown()
    ordered = {name: named[name] for name in dict.fromkeys([*_SECTIONS, *named]) if name in named and name != "judges"}
    if rows := [{"setting": path, "value": value} for path, value in _flat(ordered)]:
        columns = [Column("setting", "Setting"), Column("value", "Value")]
        notes = ["Prompts by name and version in their sections, and by a digest of their words under 'prompts'."]
        yield Table("settings", "Settings", columns, rows, notes)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Leaves by their dotted path; what is not set or empty is left out."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        for at, part in enumerate(value, start=1):
            yield from _flat({key: own for key, own in part.items() if key != "name"}, f"{path}.{part.get('name', at)}")
    elif value not in (None, "", [], ()):
        yield path, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(part, str | int | float) for part in value):
        return ", ".join(map(_plain, value))
    if isinstance(value, str):
        return value or MISSING
    return MISSING if value in (None, {}) else json.dumps(value, ensure_ascii=False)
