"""A tournament's report as one HTML page, a memo of two printed pages with a folded appendix, and its web site."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from arena.boards.calibration import CalibrationBoard
from arena.boards.card import JudgeCard, JudgeCards, judge_cards
from arena.boards.compare import compare_board
from arena.boards.conclusion import BY_PEOPLE, expectation
from arena.boards.coverage import missing
from arena.boards.games import documents_on, games_on, opponents_table, verdicts_table
from arena.boards.leaderboard import TournamentBoard, judged_on
from arena.boards.queries import QueryBoard, query_board
from arena.boards.trust import PEOPLE, in_short
from arena.config.settings import StoredSettings
from arena.config.stages import all_tasks
from arena.data.dataset import Dataset, texts_of
from arena.present.blocks import Block, Board, Check, Checks, Commands, Remarks, Section, Thread, VerdictCard
from arena.present.files import MARK, Report, render, style_sheet
from arena.present.numbers import COUNT, MISSING, MONEY, PERCENT, POINTS, counted, listed
from arena.present.picture import Chart, Matrix, Whiskers, nowhere
from arena.present.table import Column, Table, TableRow, first
from arena.results.agreement import calibrate_tournament, resampling_of
from arena.results.cache import cached_games, cached_leaderboard
from arena.results.games import GameTable
from arena.results.outcomes import labels_of
from arena.store import IDENTICAL, Result, Store, Wanted
from judges.errors import InputError
from judges.types import JudgeFailure, Judgment, Message, Query, Task, Usage
from retrieval_eval.data.files import open_binary, open_replacing
from retrieval_eval.stats import Floats

JudgedWants: TypeAlias = Sequence[tuple[Wanted, Result | None]]

_PACKAGES: Final = ("ragleague", "numpy", "scipy", "ir-measures")
"""Packages whose versions the report states, since another version may change a figure."""
_SECTIONS: Final = ("pairwise", "retrieval", "criteria", "exam", "nuggets", "agents", "ratings", "prompts")
"""Order in which the report shows the configuration's sections; the others follow."""
_COMMANDS: Final = ("leaderboard", "report")
_REPRODUCED: Final = "The same store gives the same figures; two stores with equal digests hold the same."
_MOST_AGENTS: Final = 16
_MOST_LINES: Final = 6
"""The memo's limits, so that it is printed on two pages: rows of its table, and lines of each of its lists."""
_EFFORT: Final = (
    Column("judge", "Judge"),
    Column("task", "Stage"),
    Column("models", "Model that replied"),
    Column("judgments", "Judgments", COUNT),
    Column("failed", "Failed", COUNT),
    Column("calls", "Calls", COUNT),
    Column("input_tokens", "Tokens in", POINTS),
    Column("cached", "Cached", PERCENT, "Of the tokens in: read from the server's cache."),
    Column("output_tokens", "Tokens out", POINTS),
    Column("cost_usd", "Cost", MONEY),
)


class TournamentReport(Board, frozen=True):
    """Contents of the report on a tournament: a memo of two pages, and its appendix.

    Attributes:
        source: name of the configuration or store, fit for readers elsewhere.
        data_digest: SHA-256 of the data, see ``arena.data.dataset.Dataset.digest``.
        results_digest: SHA-256 of the ids and outcomes of all judgments.
    """

    shown: TournamentBoard
    source: str
    counts: Mapping[str, int]
    data_digest: str
    results_digest: str
    versions: Mapping[str, str]
    queries: Mapping[str, Query]
    cards: Sequence[JudgeCard] = ()

    def sections(self) -> list[Section]:
        return [*self.memo(), *self.appendix()]

    def memo(self) -> list[Section]:
        """What a decision needs besides the opening, on two printed pages together with it."""
        sections = [self._doubts(), self._compared(), self._people(), self._basis()]
        return [section for section in sections if section.blocks]

    def _doubts(self) -> Section:
        conclusion, checks = self.shown.verdict()
        named = {conclusion.headline, *(check.name for check in self._people_checks())}
        doubts = [check for check in checks if check.status != "passed" and check.name not in named]
        blocks = [*self._in_lines(doubts), Remarks([in_short(checks, named=())])] if checks else []
        return Section("doubts", "Checks", "", blocks)

    def _in_lines(self, checks: Sequence[Check]) -> list[Block]:
        """One line for each of the first six checks, and the names of the other checks.

        A finding that the verdict card shows already is not repeated.
        """
        why = next(block.why for block in self.shown.opening() if isinstance(block, VerdictCard))
        lines = [replace(check, finding="See above." if check.finding in why else check.finding) for check in checks]
        others = [check.name for check in checks[_MOST_LINES:]]
        more = [Remarks([f"Also: {'; '.join(others)}."])] if others else []
        return [Checks(lines[:_MOST_LINES], brief=True), *more] if checks else []

    def _compared(self) -> Section:
        figure = self.shown.figure
        remarks = [block for block in figure.blocks if isinstance(block, Remarks)] if figure is not None else []
        return Section("scores", "What the other scores say", "", [_capped(block.items) for block in remarks])

    def _people(self) -> Section:
        cards = [_capped([card.headline for card in self.cards])] if self.shown.comparisons else []
        return Section("opinions", "What people say", "", [*self._in_lines(self._people_checks()), *cards])

    def _people_checks(self) -> list[Check]:
        checks = self.shown.verdict()[1]
        return [check for check in checks if check.name == BY_PEOPLE or check.name.startswith(PEOPLE)]

    def _basis(self) -> Section:
        board, settings = self.shown.board, self.shown.board.settings
        judges = [
            " ".join(dict.fromkeys(filter(None, (name, own.provider, own.model))))
            for name, own in settings.judges.items()
        ] or board.judges
        stages = board.coverage.values()
        wanted, judged, failed = (sum(getattr(one, name) for one in stages) for name in ("wanted", "judged", "failed"))
        asked = f"{judged:,} of {wanted:,}; {failed:,} failed, {wanted - judged - failed:,} not made"
        people = [
            f"{counted(len(own.annotators), 'person', 'people')} gave {len(own.opinions):,} {own.level}"
            for own in (comparison.people for comparison in self.shown.comparisons)
        ]
        facts = {
            "Data": ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items() if count),
            "Judges": listed(judges, _MOST_LINES) if judges else "",
            "People": "; ".join(people[:_MOST_LINES]),
            "Prompts, digests": ", ".join(f"{name} {digest}" for name, digest in settings.prompts.items()),
            "Judgments": asked + (f"; last on {self.shown.judged}" if self.shown.judged else ""),
            "Digest of the data": self.data_digest,
            "Digest of the judgments": self.results_digest,
            "Versions": ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        }
        rows = [{"what": name, "value": value} for name, value in facts.items() if value]
        tournament_option = [] if self.source.endswith((".yaml", ".yml")) else ["--tournament", board.tournament]
        if board.group is not None:
            tournament_option += ["--group", "=".join(board.group)]
        if board.by_group is not None and board.by_group.interaction is not None:  # of the one column that was named
            tournament_option += ["--by", *board.by_group.columns]
        blocks: list[Block] = [
            Table("basis", "", [Column("what", "What"), Column("value", "Value")], rows),
            *([Remarks(lines)] if (lines := missing(board)) else []),
            Commands([shlex.join(["ragleague", command, self.source, *tournament_option]) for command in _COMMANDS]),
            Remarks([_REPRODUCED]),
        ]
        return Section("basis", "What it rests on", "", blocks)

    def appendix(self, link: Callable[[str], str] = nowhere) -> list[Section]:
        board, settings = self.shown.board, self.shown.board.settings
        sections = {section.ident: section for section in self.shown.sections() if section.ident != "conclusion"}
        if board.ratings is not None:
            predictions = Remarks([*expectation(board.ratings, self.shown.conclusion)])
            blocks = sections["leaderboard"].blocks
            cluster_names = [
                row["query"] for block in blocks if isinstance(block, Table) for row in block.rows if "query" in row
            ]
            longest = {
                query.cluster: query for query in sorted(self.queries.values(), key=lambda query: len(query.messages))
            }
            threads = [
                Thread((*last.messages, Message("user", last.text)), f"Conversation {name}")
                for name in cluster_names
                if (last := longest.get(name)) is not None and last.messages
            ]
            sections["leaderboard"] = replace(
                sections["leaderboard"], blocks=[predictions, *_linked(blocks, link), *threads]
            )
        lead = "As stored with the tournament. Keys are never stored."
        blocks = [*_judges(settings), *_settings(settings)]
        sections["settings"] = Section("settings", "Settings, prompts and models", lead, blocks)
        said = {line for section in self.memo() for block in section.blocks for line in _lines(block)}
        return [*_said_once(sections.values(), said)]

    def page(self, made: datetime, link: Callable[[str], str] = nowhere) -> Report:
        opening = self.shown.opening(link=link)
        return Report(
            self.shown.title,
            [
                first(block, _MOST_AGENTS, "in the appendix") if isinstance(block, Table) else block
                for block in opening
                if not isinstance(block, Checks | Chart)  # checks have a section; charts are in the appendix
            ],
            self.memo(),
            self.written(made),
            appendix=self.appendix(link),
        )

    def written(self, made: datetime) -> str:
        return f"{made:%Y-%m-%d %H:%M} UTC by ragleague {self.versions['ragleague']}"


def _lines(block: Block) -> Sequence[str]:
    return block.items if isinstance(block, Remarks) else block.notes if isinstance(block, Table) else ()


def _said_once(sections: Iterable[Section], said: set[str]) -> Iterator[Section]:
    """Leave out sentences in ``said`` or an earlier section, and checks of one, which a judge's card lists in brief."""
    checked: set[Check] = set()
    for section in sections:
        is_card = any(isinstance(block, VerdictCard) for block in section.blocks)
        blocks: list[Block] = []
        for block in section.blocks:
            lines = [line for line in _lines(block) if line not in said]
            if isinstance(block, Remarks):
                blocks += [Remarks(lines)] if lines else []
            elif isinstance(block, Checks):
                new = [check for check in block.items if check not in checked]
                again = [check for check in block.items if check in checked and is_card]
                blocks += [Checks(new)] if new else []
                blocks += [Checks(again, brief=True)] if again else []
                checked.update(new)
            elif not isinstance(block, Table):
                blocks.append(block)
            elif block.name != "correlations":  # the matrix shows them
                blocks.append(replace(block, notes=lines))
            said.update(lines)
        if blocks:
            yield replace(section, blocks=blocks)


def _capped(sentences: Sequence[str]) -> Remarks:
    more = len(sentences) - _MOST_LINES
    return Remarks([*sentences[:_MOST_LINES], *([f"{more:,} more in the appendix."] if more > 0 else [])])


def _linked(blocks: Sequence[Block], link: Callable[[str], str]) -> list[Block]:
    """The blocks without the picture that the opening's table draws; ``link`` gives the addresses of agents."""
    return [
        replace(
            block,
            columns=[replace(block.columns[0], link="address"), *block.columns[1:]],
            rows=[{**row, "address": link(row["agent"])} for row in block.rows],
        )
        if isinstance(block, Table) and block.name == "leaderboard"
        else block
        for block in blocks
        if not isinstance(block, Whiskers)
    ]


def tournament_report(
    store: Store, tournament: str, source: str, *, by: str = "", below_coverage: bool = False
) -> TournamentReport:
    board = cached_leaderboard(store, tournament, by=by, below_coverage=below_coverage)
    data = store.dataset(tournament)
    outcomes = [entry for task in all_tasks() for entry in store.outcomes(tournament, task)]
    compared = compare_board(store, tournament)
    calibration = calibrate_tournament(store, tournament, resampling_of(board.settings), label_next=0)
    today = datetime.now(UTC).date()
    cards = JudgeCards(tournament, today, ())
    if calibration.comparisons or board.settings.card is not None:
        cards = judge_cards(board, calibration, today)
    shown = TournamentBoard(
        board,
        calibration.comparisons,
        calibration.apart,
        calibration.scores,
        compared.report() if compared.ways else None,
        queries=texts_of(data.queries.values()),
        failures=Counter(
            (want.task, want.judge, result.cause) for want, result in outcomes if isinstance(result, JudgeFailure)
        ),
        effort=_effort(outcomes),
        calibration=[*cards.sections(), *CalibrationBoard(calibration).sections()],
        asked=len(data.queries),
        judged=judged_on(store, tournament),
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
        shown,
        source,
        counts,
        data.digest(),
        _digest(outcomes),
        versions,
        data.queries,
        cards.cards,
    )


def write_report(
    store: Store,
    tournament: str,
    out: Path,
    source: str,
    *,
    by: str = "",
    below_coverage: bool = False,
    force: bool = False,
) -> tuple[TournamentReport, int]:
    """Write a tournament's report as one HTML file; returns the report and the file's size in bytes.

    A file at ``out`` that is no report is replaced only with ``force``.
    """
    if not force:
        _refuse_to_replace(out)
    report = tournament_report(store, tournament, source, by=by, below_coverage=below_coverage)
    return report, _write(out, render(report.page(datetime.now(UTC))))


def _refuse_to_replace(out: Path) -> None:
    if out.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"{out}: the name of a report must end in .html; choose another name, or use --force")
    if out.exists() and not _is_published(out):
        raise InputError(f"{out}: exists and is not a report; choose another name, or replace it with --force")


def _effort(outcomes: JudgedWants) -> list[Table]:
    """Table of each judge's calls, tokens and cost by stage, as far as servers report them; none without results."""
    by_judge: defaultdict[tuple[Task, str], dict[str, Result]] = defaultdict(dict)
    for want, result in outcomes:
        if result is not None and result.judgment_id != IDENTICAL:
            by_judge[want.task, want.judge][result.judgment_id] = result
    rows = []
    for (task, judge), by_id in by_judge.items():
        results = by_id.values()
        judgments, costs = sum(isinstance(result, Judgment) for result in results), [own.cost_usd for own in results]
        models = Counter(result.model or "unknown" for result in results).most_common()
        usage = sum((result.usage for result in results), Usage())
        rows.append(
            {
                "judge": judge,
                "task": task,
                "models": [f"{model} ({COUNT.write(count)})" for model, count in models],
                "judgments": judgments,
                "failed": len(results) - judgments,
                "calls": sum(result.calls for result in results),
                **asdict(usage),
                "cached": (usage.cached_input_tokens or 0) / usage.input_tokens if usage.input_tokens else None,
                "cost_usd": None if None in costs else sum(filter(None, costs)),
            }
        )
    notes = ["A judgment that several games share, because their texts are the same, was paid for and counts once."]
    return [Table("effort", "What was asked", _EFFORT, rows, notes)] if rows else []


def _digest(outcomes: JudgedWants) -> str:
    lines = {
        f"{result.judgment_id} "
        + (json.dumps(result.outcome, sort_keys=True) if isinstance(result, Judgment) else f"failed {result.cause}")
        for _, result in outcomes
        if result is not None
    }
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _judges(settings: StoredSettings) -> Iterator[Table]:
    if judges := settings.raw.get("judges"):
        names = dict.fromkeys(name for own in judges.values() for name, value in own.items() if value not in (None, ""))
        rows = [
            {"setting": name} | {f"of {judge}": _plain(own.get(name)) for judge, own in judges.items()}
            for name in names
        ]
        columns = [Column("setting", "Setting"), *(Column(f"of {judge}", judge) for judge in judges)]
        yield Table("judge-settings", "Judges", columns, rows)


def _settings(settings: StoredSettings) -> Iterator[Table]:
    sections = settings.shown()
    ordered = {
        name: sections[name] for name in dict.fromkeys([*_SECTIONS, *sections]) if name in sections and name != "judges"
    }
    if rows := [{"setting": path, "value": value} for path, value in _flat(ordered)]:
        columns = [Column("setting", "Setting"), Column("value", "Value")]
        notes = ["Prompts by name and version in their sections, and by a digest of their words under 'prompts'."]
        yield Table("settings", "Settings", columns, rows, notes)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value, start=1):
            yield from _flat(
                {key: inner for key, inner in part.items() if key != "name"}, f"{path}.{part.get('name', number)}"
            )
    elif value not in (None, "", [], ()):
        yield path, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(part, str | int | float) for part in value):
        return ", ".join(map(_plain, value))
    if isinstance(value, str):
        return value or MISSING
    return MISSING if value in (None, {}) else json.dumps(value, ensure_ascii=False)


_STYLE: Final = "style.css"
_INDEX: Final = "index.html"
_FOLDERS: Final = ("queries", "agents")
_WORST: Final = 30
_GAMES, _PLAYING, _MOST_DOCUMENTS = 30, 6, 20
"""Limits on the page of a query: number of games; if there are more, number of best agents whose games are shown
instead; number of documents."""
_LARGE: Final = 2000
"""In a tournament with more answers, a query's page shows only some of them; a heat map with more cells has no tooltips
or links."""
_NEEDLESS: Final = re.compile(r"</(?:td|th|tr|li|dt|dd)>| class=\"\"|(?<==)\"([\w.#/-]*[\w.#-])\"")
"""Matches end tags and quotes that HTML does not need; the text of a page never matches, since it is escaped."""
_DOCUMENTS: Final = (
    Column("did", "Document"),
    Column("text", "Text"),
    Column("label", "Judge's label", COUNT),
    Column("people", "People's label", COUNT),
    Column("found", "Found by", COUNT, "Agents that retrieved it."),
)


class _Site(Struct, frozen=True):
    """A tournament's data and settings, from which its pages are made.

    ``numbers`` has the number that names a page's file, by ``queries`` or ``agents`` and the name: ids may contain
    characters that a file name may not.
    """

    store: Store
    report: TournamentReport
    board: QueryBoard
    data: Dataset
    games: GameTable
    scores: Floats
    agents: Sequence[str]
    numbers: Mapping[tuple[str, str], int]
    made: datetime

    @property
    def name(self) -> str:
        return self.report.shown.board.tournament

    def pages(self) -> Iterator[tuple[str, Report]]:
        """Path and content of each page; pages of queries and agents come before the overviews that link to them."""
        queries = self.board.separating(self.board.kinds[0]) if self.board.kinds else [*self.board.queries]
        maps: list[Block] = [
            _sparing(
                self.board.heat_map(
                    kind, self.agents, queries, lambda query_id, agent: self._address(query_id, agent, "")
                )
            )
            for kind in self.board.kinds
        ]
        blocks = [self.board.in_short(), *maps] if maps else [Remarks(["No game has a verdict yet."])]
        for query_id in self.board.queries:
            yield self._address(query_id, "", ""), self._of_query(query_id)
        for agent in self.agents:
            yield self._address("", agent, ""), self._of_agent(agent)
        yield "queries.html", self._page("", [], [Section("queries", "Queries", "", blocks)])
        front = self.report.page(self.made, lambda agent: self._address("", agent, ""))
        yield _INDEX, replace(front, pages=self._beside(""), style=_STYLE)

    def _page(self, up: str, opening: Sequence[Block], sections: Sequence[Section]) -> Report:
        made = self.report.written(self.made)
        return Report(self.report.shown.title, opening, sections, made, self._beside(up), up + _STYLE)

    def _beside(self, up: str) -> Sequence[tuple[str, str]]:
        return ("Leaderboard", f"{up}{_INDEX}"), ("Compare", f"{up}{_INDEX}#compare"), ("Queries", f"{up}queries.html")

    def _address(self, query_id: str, agent: str, up: str = "../") -> str:
        kind, name = ("queries", query_id) if query_id else ("agents", agent)
        return f"{up}{kind}/{self.numbers[kind, name]}.html" if name else ""

    def _of_query(self, query_id: str) -> Report:
        ranking = self.board.query_table(query_id, self.agents, lambda _, agent: self._address("", agent))
        large = len(self.agents) * len(self.board.queries) > _LARGE
        left_out = range(_PLAYING, len(ranking.rows) - _PLAYING) if large else range(0)
        rows = [
            {**row, "answer": None if position in left_out or answer is None else answer.text or "(empty)"}
            for position, row in enumerate(ranking.rows)
            for answer in [self.data.answers.get((query_id, row["agent"]))]
        ]
        note = f"Answers of the {_PLAYING} best and the {_PLAYING} worst here. {len(left_out)} more are in the store."
        others = [column for column in ranking.columns[1:] if column.key != "games"]
        columns = [ranking.columns[0], Column("answer", "Answer"), *others]
        shown: list[Block] = [
            Thread(self.data.queries[query_id].messages),
            replace(ranking, rows=rows, columns=columns, notes=[*ranking.notes, *([note] if left_out else [])]),
        ]
        sections = [Section("agents", self.board.label(query_id), "", shown)]
        if documents := documents_on(query_id, self.data, labels_of(self.store, self.name, query_id)):
            document_rows: list[TableRow] = [
                {"did": own.document.doc_id, "text": own.document.text, "label": own.label, "people": own.human}
                | {"found": len(own.ranks)}
                for own in documents
            ]
            table = first(Table("documents", "", _DOCUMENTS, document_rows), _MOST_DOCUMENTS, "in the store")
            sections.append(Section("documents", "Documents", "", [table]))
        played = int(self.games.of_query(query_id).sum())
        best = self.agents[:_PLAYING] if played > _GAMES else None
        if records := games_on(self.store, self.name, query_id, self.games, self.scores, among=best):
            table = verdicts_table(records, nowhere)
            more = played - len(records)
            notes = [f"Games among the {_PLAYING} best agents. {more:,} more are in the store."] if more else []
            sections.append(Section("games", "Games", "", [replace(table, notes=[*table.notes, *notes])]))
        return self._page("../", [], sections)

    def _of_agent(self, agent: str) -> Report:
        failures = self.board.failures_table(agent, lambda query_id, _: self._address(query_id, ""))
        worst = first(failures, _WORST, "the heat map")
        sections = [
            Section("agent", agent, "", [self.board.scores_of(agent, self.report.shown.board.ratings)]),
            Section("queries", "Queries, the worst first", "", [_without_links_to_games(worst)]),
        ]
        if agent in self.games.agents:
            others = opponents_table(self.games, self.scores, agent, lambda other, _: self._address("", other))
            if others.rows:
                sections.append(Section("opponents", "Against each agent", "", [_without_links_to_games(others)]))
        return self._page("../", [], sections)


def publish(
    store: Store, tournament: str, folder: Path, source: str, *, by: str = "", below_coverage: bool = False
) -> tuple[TournamentReport, int, int]:
    """Write a tournament as HTML pages into a folder; returns its report, the number of pages and the number of bytes.

    Pages of an earlier call are replaced; pages of removed queries or agents are deleted. Other files are not touched.
    The pages contain no script and load only each other and their style sheet. The folder is created if it is missing.
    ``source`` is the name of the configuration or store, as the pages show it.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder to write the pages into")
    existing = [
        path for pattern in ("*.html", *(f"{name}/*.html" for name in _FOLDERS)) for path in folder.glob(pattern)
    ]
    published = {path for path in existing if _is_published(path)}
    if foreign := next(
        (path for path in existing if path not in published and path.name in {_INDEX, "queries.html"}), None
    ):
        raise InputError(f"{foreign}: exists, and 'publish' did not write it; choose another folder")
    site = _read(store, tournament, source, by=by, below_coverage=below_coverage)
    written, size = set[Path](), 0
    for name in ("", *_FOLDERS):
        (folder / name).mkdir(parents=True, exist_ok=True)
    size += _write(folder / _STYLE, style_sheet())
    for name, page in site.pages():
        size += _write(folder / name, MARK + _NEEDLESS.sub(lambda match: match[1] or "", render(page)[len(MARK) :]))
        written.add(folder / name)
    for stale in published - written:
        stale.unlink()
    return site.report, len(written), size


def _read(store: Store, tournament: str, source: str, *, by: str, below_coverage: bool) -> _Site:
    report = tournament_report(store, tournament, source, by=by, below_coverage=below_coverage)
    board, games = query_board(store, tournament), cached_games(store, tournament)
    leaders = report.shown.board
    agents = board.agents(leaders.ratings)
    numbers = {("queries", name): number for number, name in enumerate(board.queries, 1)}
    numbers |= {("agents", name): number for number, name in enumerate(sorted(agents), 1)}
    return _Site(
        store,
        report,
        board,
        store.dataset(tournament),
        games,
        games.scores(leaders.settings.win_and_tie),
        agents,
        numbers,
        datetime.now(UTC),
    )


def _without_links_to_games(table: Table) -> Table:
    columns = [replace(own, link="") if own.link in {"to_games", "to_lost"} else own for own in table.columns]
    return replace(table, columns=columns)


def _sparing(matrix: Matrix) -> Matrix:
    if len(matrix.cells) <= _LARGE:
        return matrix
    return replace(matrix, cells={key: replace(cell, tooltip="", link="") for key, cell in matrix.cells.items()})


def _is_published(path: Path) -> bool:
    with open_binary(path) as file:
        return file.read(len(MARK)) == MARK.encode()


def _write(path: Path, text: str) -> int:
    data = text.encode()
    with open_replacing(path) as file:
        file.write(data)
    return len(data)
