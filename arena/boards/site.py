"""A tournament as a folder of linked static pages: its report, and a page for each query and each agent.

Exam questions and nuggets are left out, since agents could be trained on published questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from arena.boards.games import documents_on, games_on, opponents_table, verdicts_table
from arena.boards.queries import QueryBoard, query_board
from arena.boards.report import TournamentReport, tournament_report
from arena.data.dataset import Dataset
from arena.present.blocks import Block, Remarks, Section, Thread
from arena.present.numbers import COUNT
from arena.present.picture import Matrix, nowhere
from arena.present.report import MARK, Report, render, style_sheet
from arena.present.table import Column, Table, first
from arena.results.cache import cached_games
from arena.results.games import GameTable
from arena.results.outcomes import labels_of
from arena.store import Store
from judges.errors import InputError
from retrieval_eval.data.files import open_binary, open_replacing
from retrieval_eval.stats.arrays import Floats

_STYLE: Final = "style.css"
_INDEX: Final = "index.html"
_FOLDERS: Final = ("queries", "agents")
_WORST: Final = 30
"""Largest number of queries listed on an agent's page."""
_GAMES, _PLAYING, _MOST_DOCUMENTS = 30, 6, 20
"""Limits of a query's page: games shown in full; if there are more, the best agents to show games of; documents."""
_LARGE: Final = 2000
"""If a tournament has more answers, a query's page shows only some, and heat maps have no tooltips or links."""
_NEEDLESS: Final = re.compile(r"</(?:td|th|tr|li|dt|dd)>| class=\"\"|(?<==)\"([\w.#/-]*[\w.#-])\"")
"""End tags and quotes that HTML does not need; texts never match, since their quotes and brackets are escaped."""
_DOCUMENTS: Final = (
    Column("did", "Document"),
    Column("text", "Text"),
    Column("label", "Judge's label", COUNT),
    Column("people", "People's label", COUNT),
    Column("found", "Found by", COUNT, "Agents that retrieved it."),
)


class _Site(Struct, frozen=True):
    """Data and settings behind the pages.

    Attributes:
        numbers: numbers of queries and agents, used as file names since names may contain anything.
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
        """Each page with the path of its file; a page comes after the pages that it links to."""
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
        made = f"{self.made:%Y-%m-%d %H:%M} UTC by ragleague {self.report.versions['ragleague']}"
        return Report(self.name, opening, sections, made, self._beside(up), up + _STYLE)

    def _beside(self, up: str) -> Sequence[tuple[str, str]]:
        return ("Leaderboard", f"{up}{_INDEX}"), ("Compare", f"{up}{_INDEX}#compare"), ("Queries", f"{up}queries.html")

    def _address(self, query_id: str, agent: str, up: str = "../") -> str:
        """Address of a query's page, or of an agent's page if ``query_id`` is empty."""
        kind, name = ("queries", query_id) if query_id else ("agents", agent)
        return f"{up}{kind}/{self.numbers[kind, name]}.html" if name else ""

    def _of_query(self, query_id: str) -> Report:
        ranking = self.board.query_table(query_id, self.agents, lambda _, agent: self._address("", agent))
        large = len(self.agents) * len(self.board.queries) > _LARGE
        left_out = range(_PLAYING, len(ranking.rows) - _PLAYING) if large else range(0)
        rows = [
            {**row, "answer": None if position in left_out else self._answer(query_id, row["agent"])}
            for position, row in enumerate(ranking.rows)
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
            document_rows: list[dict[str, Any]] = [
                {
                    "did": document.document.doc_id,
                    "text": document.document.text,
                    "label": document.label,
                    "people": document.human,
                    "found": len(document.ranks),
                }
                for document in documents
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

    def _answer(self, query_id: str, agent: str) -> str | None:
        answer = self.data.answers.get((query_id, agent))
        return None if answer is None else answer.text or "(empty)"

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
    store: Store, tournament: str, folder: Path, source: str, *, below_coverage: bool = False
) -> tuple[TournamentReport, int, int]:
    """Write a tournament as pages into a folder; returns its report, the number of pages and the number of bytes.

    Pages of an earlier call are replaced; pages of removed queries or agents are deleted. Other files are not touched.
    The pages contain no script and load only each other and their style sheet. The folder is created if it is missing;
    ``source`` is the configuration or store in a form that may be shown.

    Raises:
        InputError: the folder is a file, or its index.html or queries.html was not written by ``publish``.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder")
    existing = [
        path for pattern in ("*.html", *(f"{name}/*.html" for name in _FOLDERS)) for path in folder.glob(pattern)
    ]
    published = {path for path in existing if _is_published(path)}
    if foreign := next(
        (path for path in existing if path not in published and path.name in {_INDEX, "queries.html"}), None
    ):
        raise InputError(f"{foreign}: a page that 'publish' did not write; choose another folder")
    site = _read(store, tournament, source, below_coverage=below_coverage)
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


def _read(store: Store, tournament: str, source: str, *, below_coverage: bool) -> _Site:
    report = tournament_report(store, tournament, source, below_coverage=below_coverage)
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
    """The table without links to games, which have no pages here."""
    return replace(
        table,
        columns=[
            replace(column, link="" if column.link in {"to_games", "to_lost"} else column.link)
            for column in table.columns
        ],
    )


def _sparing(matrix: Matrix) -> Matrix:
    """A large matrix without its cells' tooltips and links."""
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
