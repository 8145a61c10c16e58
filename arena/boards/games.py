"""Games for people to read: filters, verdicts with reasons, flags and documents, and the win matrix of all games."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from arena.boards.quantities import WON, quantity
from arena.boards.queries import label_of_query
from arena.config.settings import StoredSettings
from arena.data.dataset import SHARED, Dataset
from arena.data.kinds import FLAG, Annotation, texts_now
from arena.present.blocks import Board, Section
from arena.present.numbers import COUNT, POINTS, Number, clipped
from arena.present.picture import Matrix, MatrixCell, nowhere
from arena.present.table import Column, Table, TableRow, plain
from arena.ratings.pairs import WinMatrix, win_matrix
from arena.results.cache import cached_games
from arena.results.documents import documents_shown
from arena.results.games import GameKey, GameTable
from arena.results.outcomes import outcomes
from arena.results.ratings import Leaderboard, rating_settings
from arena.store import IDENTICAL, Result, Store
from arena.store.annotations import Annotations
from arena.store.outcomes import LabelResults
from judges.errors import CAUSES
from judges.types import Document, JudgeFailure, Judgment, Query, Task, Verdict, label_of
from retrieval_eval.stats import Bools, Floats

GameEnding: TypeAlias = Literal["a winner", "a tie", "no verdict yet", "the agent wins", "the agent loses"]
Apart: TypeAlias = Literal["the two orders", "the judges"]
GameLink: TypeAlias = Callable[[GameKey], str]
Flags: TypeAlias = Mapping[GameKey, Sequence[Annotation]]

_REASON: Final = 240
_COLUMNS: Final = (
    Column("agent_a", "Agent", link="to_agent_a"),
    Column("agent_b", "Opponent", link="to_agent_b"),
    Column("result", "Result", link="to_result"),
    Column("orders", "Orders"),
    Column("query", "Query", link="to_query"),
    Column("judge", "Judge"),
    Column("flagged", "Flagged by"),
)
_VERDICTS: Final = (
    Column("game", "Game", link="to"),
    Column("result", "Result"),
    Column("judge", "Judge"),
    Column("verdict_ab", "First order"),
    Column("reason_ab", "Reason"),
    Column("verdict_ba", "Answers exchanged"),
    Column("reason_ba", "Its reason"),
)
_LOST: Final = (
    Column("query", "Query", link="to"),
    Column("opponent", "Lost against", link="to"),
    Column("judge", "Judge"),
    Column("reason", "The judge's reason"),
)
_OPPONENTS: Final = (
    Column("opponent", "Against", link="to"),
    quantity(WON).column(),
    Column("lost", "Lost", COUNT, link="to_lost"),
    Column("games", "Games", COUNT),
)


class GameFilter(Struct, frozen=True):
    """Conditions on games; ``None`` means any. "The agent wins" and "the agent loses" need ``agent``."""

    agent: str | None = None
    opponent: str | None = None
    queries: Collection[str] | None = None
    ending: GameEnding | None = None
    judge: str | None = None
    apart: Apart | None = None
    among: Collection[GameKey] | None = None

    def rows(self, games: GameTable, scores: Floats) -> NDArray[np.intp]:
        """Indices of games that meet the conditions, in the planned order; ``scores`` come from ``games.scores``."""
        passing = np.ones(len(games), np.bool_)
        for agent in (self.agent, self.opponent):
            if agent is not None:
                passing &= games.of_agent(agent)
        if self.queries is not None:
            passing &= games.of_query(*self.queries)
        if self.judge is not None:
            passing &= games.of_judge(self.judge)
        if self.ending is not None:
            passing &= self._ended(self.ending, games, scores)
        if self.apart is not None:
            passing &= games.orders_disagree if self.apart == "the two orders" else games.judges_disagree(scores)
        if self.among is not None:
            passing &= np.isin(
                np.arange(len(games)), [row for key in self.among if (row := games.find(key)) is not None]
            )
        return np.flatnonzero(passing)

    def _ended(self, ending: GameEnding, games: GameTable, scores: Floats) -> Bools:
        won = np.zeros(len(games), np.bool_)
        if self.agent in games.agents:
            is_a = games.a == games.agents.index(self.agent)
            won = np.where(is_a, scores == 1, scores == 0)
        decided = (scores == 1) | (scores == 0)
        by_ending: dict[GameEnding, Bools] = {
            "a winner": decided,
            "a tie": scores == 0.5,
            "no verdict yet": np.isnan(scores),
            "the agent wins": decided & won,
            "the agent loses": decided & ~won & (self.agent in games.agents),
        }
        return by_ending[ending]


def games_table(
    games: GameTable,
    scores: Floats,
    rows: Sequence[int],
    queries: Mapping[str, Query],
    *,
    flags: Flags,
    link: Callable[[GameKey], Mapping[str, str]] = lambda _: {},
    longest: int = 200,
) -> Table:
    """Table of games; query texts are cut to ``longest`` characters; ``link`` returns addresses of a game's pages."""
    lines = []
    for row in rows:
        key = games.key(row)
        line = key._asdict() | {
            "result": _result(key, scores[row]),
            "orders": _orders(games, row),
            "query": label_of_query(key.query_id, queries[key.query_id], longest),
            "judge": key.judge if len(games.judges) > 1 else None,
            "flagged": ", ".join(flag.annotator for flag in flags.get(key, ())) or None,
        }
        lines.append(line | {f"to_{column}": address for column, address in link(key).items()})
    return Table("games", "", _COLUMNS, lines)


def address_of(key: GameKey) -> str:
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


def game_at(address: str | None) -> GameKey | None:
    try:
        names = json.loads(address or "null")
    except (ValueError, RecursionError):
        return None
    is_key = isinstance(names, list) and len(names) == len(GameKey._fields)
    return GameKey(*names) if is_key and all(isinstance(name, str) for name in names) else None


def _result(key: GameKey, score: float) -> str:
    if np.isnan(score):
        return "no verdict yet"
    return {1.0: f"{key.agent_a} wins", 0.0: f"{key.agent_b} wins"}.get(float(score), "a tie")


def _orders(games: GameTable, row: int) -> str:
    if not games.judged[row].all():
        return "one order only" if games.played[row] else ""
    return "disagree" if games.orders_disagree[row] else "agree"


class ShownOrder(Struct, frozen=True):
    """One order of a game: judges see ``first`` as answer A, ``second`` as B; ``result`` is ``None`` if not judged."""

    first: str
    second: str
    result: Result | None

    @property
    def preferred(self) -> str | None:
        if not isinstance(self.result, Judgment):
            return None
        return {Verdict.A: self.first, Verdict.B: self.second, Verdict.TIE: ""}[Verdict(str(self.result.outcome))]

    @property
    def verdict_text(self) -> str:
        if isinstance(self.result, JudgeFailure):
            return f"failed: {CAUSES.get(self.result.cause, self.result.cause)}"
        return "not judged yet" if self.preferred is None else self.preferred or "a tie"


class GameRecord(Struct, frozen=True):
    """A game of two agents on one query, judged by one judge.

    Attributes:
        orders: the one or two orders planned.
        score: score of ``agent_a`` in the rated game: 1, 0.5 or 0; ``None`` without a verdict.
    """

    query_id: str
    agent_a: str
    agent_b: str
    judge: str
    orders: tuple[ShownOrder, ...]
    score: float | None

    @property
    def key(self) -> GameKey:
        return GameKey(self.query_id, self.agent_a, self.agent_b, self.judge)

    @property
    def mark(self) -> str:
        """Hash of the game's key, 12 hexadecimal digits, used in ids of elements of the page."""
        return hashlib.sha256(json.dumps(self.key).encode()).hexdigest()[:12]

    @property
    def winner(self) -> str | None:
        """The agent that won the rated game; ``None`` for a tie or without a verdict."""
        return {1.0: self.agent_a, 0.0: self.agent_b}.get(-1.0 if self.score is None else self.score)

    @property
    def orders_disagree(self) -> bool:
        preferred = [order.preferred for order in self.orders]
        return len(preferred) == 2 and None not in preferred and preferred[0] != preferred[1]

    @property
    def same_answers(self) -> bool:
        """Whether both answers are the same text; such a game is a tie, and no judge is asked."""
        return any(order.result is not None and order.result.judgment_id == IDENTICAL for order in self.orders)

    @property
    def outcome(self) -> str:
        if self.score is None:
            return "No verdict yet."
        ending = f"{self.winner} wins" if self.winner is not None else "A tie"
        if self.same_answers:
            return f"{ending}: both answers are the same text."
        if sum(order.preferred is not None for order in self.orders) < 2:
            return f"{ending}, by the one order that has a verdict."
        return f"{ending}: the two orders {'disagree' if self.orders_disagree else 'agree'}."


def games_on(
    store: Store,
    tournament: str,
    query_id: str,
    games: GameTable,
    scores: Floats,
    *,
    among: Collection[str] | None = None,
) -> list[GameRecord]:
    """The games on a query with the verdicts of both orders, in the order of the plan; ``among`` limits the agents."""
    selected = games.of_query(query_id)
    if among is not None:
        numbers = [number for number, agent in enumerate(games.agents) if agent in among]
        selected &= np.isin(games.a, numbers) & np.isin(games.b, numbers)
    rows = np.flatnonzero(selected).tolist()
    keys = [games.key(row) for row in rows]
    orders: defaultdict[tuple[str, frozenset[str]], list[ShownOrder]] = defaultdict(list)
    for want, result in outcomes(store, tournament, Task.PAIRWISE, query_id, among):
        orders[want.judge, frozenset(want.shown)].append(ShownOrder(*want.shown, result))
    records = []
    for row, key in zip(rows, keys, strict=True):
        score = float(scores[row])
        shown = orders[key.judge, frozenset((key.agent_a, key.agent_b))]
        records.append(GameRecord(*key, tuple(shown), None if np.isnan(score) else score))
    return records


def verdicts_table(records: Sequence[GameRecord], link: GameLink) -> Table:
    several = len({record.judge for record in records}) > 1
    rows = []
    for record in records:
        row = {
            "game": f"{record.agent_a} against {record.agent_b}",
            "to": link(record.key),
            "result": "no verdict yet" if record.score is None else record.winner or "a tie",
            "judge": record.judge if several else None,
        }
        for order, shown in zip(("ab", "ba"), record.orders, strict=False):
            reason = shown.result.reason if isinstance(shown.result, Judgment) else ""
            row |= {f"verdict_{order}": shown.verdict_text, f"reason_{order}": clipped(reason, _REASON) or None}
        rows.append(row)
    return Table("verdicts", "", _VERDICTS, rows)


def lost_table(records: Iterable[GameRecord], agent: str, queries: Mapping[str, Query], link: GameLink) -> Table:
    lost = [record for record in records if record.winner not in {None, agent}]
    several = len({record.judge for record in lost}) > 1
    rows = []
    for record in lost:
        reasons = (
            order.result.reason
            for order in record.orders
            if isinstance(order.result, Judgment) and order.preferred == record.winner
        )
        row = {
            "query": label_of_query(record.query_id, queries[record.query_id]),
            "opponent": record.winner,
            "judge": record.judge if several else None,
            "reason": clipped(next(filter(None, reasons), ""), _REASON) or None,
        }
        rows.append(row | {"to": link(record.key)})
    return Table("lost", "", _LOST, rows)


def opponents_table(
    games: GameTable,
    scores: Floats,
    agent: str,
    link: Callable[[str, bool], str],
    queries: Collection[str] | None = None,
) -> Table:
    """Table with a row for each opponent of an agent, the agent's lowest share of points first.

    ``link`` returns the address of the games against an opponent: all of them, or with ``True`` only the lost ones.
    """
    index = games.agents.index(agent)
    agent_games = games.of_agent(agent) & games.played
    if queries is not None:
        agent_games &= games.of_query(*queries)
    agent_scores = np.where(games.a == index, scores, 1 - scores)[agent_games]
    opponents = np.where(games.a == index, games.b, games.a)[agent_games]
    agent_count = len(games.agents)
    played, points, lost = (
        np.bincount(opponents, weights, agent_count).tolist()
        for weights in (None, agent_scores, (agent_scores == 0).astype(np.float64))
    )
    rows = [
        {"opponent": name, "share": points[number] / played[number], "lost": int(lost[number]), "games": played[number]}
        | {"to": link(name, False), "to_lost": link(name, True)}
        for number, name in enumerate(games.agents)
        if played[number]
    ]
    return Table("opponents", "", _OPPONENTS, sorted(rows, key=lambda row: row["share"]))


def flag(key: GameKey, data: Dataset, annotator: str, comment: str | None) -> Annotation:
    """An annotation that flags a game; ``None`` as the comment withdraws the annotator's flag."""
    value = {"judge": key.judge, "comment": comment or ""}
    annotation = Annotation(FLAG.name, annotator, key.query_id, key.agent_a, key.agent_b, "", value)
    return replace(annotation, texts=texts_now(annotation, data, {}) or "", value=None if comment is None else value)


def flags_of(store: Store, tournament: str) -> Flags:
    """The flags of a tournament's games, without flags whose query or answers have changed since."""
    flags: dict[GameKey, list[Annotation]] = {}
    data: dict[str, Dataset] = {}
    for annotation in Annotations(store, tournament).latest(FLAG.name):
        if annotation.value is not None:
            if annotation.query_id not in data:
                data[annotation.query_id] = store.dataset(tournament, annotation.query_id)
            if texts_now(annotation, data[annotation.query_id], {}) == annotation.texts:
                flags.setdefault(
                    GameKey(annotation.query_id, annotation.item, annotation.other, annotation.value["judge"]), []
                ).append(annotation)
    return flags


class RetrievedDocument(Struct, frozen=True):
    """A document of a query with the rank that each agent gave it, and whether the game's judge saw it."""

    document: Document
    result: Result | None
    ranks: tuple[tuple[str, int], ...]
    human: int | None = None
    shown: bool = False

    @property
    def label(self) -> int | None:
        return label_of(self.result.outcome) if isinstance(self.result, Judgment) else None


def documents_on(
    query_id: str, data: Dataset, labels: LabelResults, agents: Collection[str] | None = None
) -> list[RetrievedDocument]:
    """Documents of a query, or only the documents that ``agents`` retrieved: highest label first, unlabelled last."""
    ranks: dict[str, list[tuple[str, int]]] = {}
    for entry in data.retrieved.get(query_id, ()):
        if agents is None or entry.agent == SHARED or entry.agent in agents:
            ranks.setdefault(entry.doc_id, []).append((entry.agent, entry.rank))
    human = data.qrels.get(query_id, {})
    documents = [
        RetrievedDocument(
            data.documents[doc_id], labels.get((query_id, doc_id)), tuple(document_ranks), human.get(doc_id)
        )
        for doc_id, document_ranks in ranks.items()
    ]
    return sorted(
        documents, key=lambda document: (document.label is None, -(document.label or 0), document.document.doc_id)
    )


def documents_of(
    game: GameRecord, data: Dataset, labels: LabelResults, settings: StoredSettings
) -> list[RetrievedDocument]:
    """The documents of a game: first the documents that its judge saw, in the order shown, then the others."""
    agents = game.agent_a, game.agent_b
    theirs = {document.document.doc_id: document for document in documents_on(game.query_id, data, labels, agents)}
    of_query = {document.document.doc_id: document for document in documents_on(game.query_id, data, labels)}
    shown = [] if game.same_answers else documents_shown(game.query_id, agents, data, labels, settings, alone=False)
    others = (document for doc_id, document in theirs.items() if doc_id not in shown)
    return [*(replace((of_query | theirs)[doc_id], shown=True) for doc_id in shown), *others]


_FEW_GAMES: Final = 4
"""Drawn games added to those of a pair for the colour of its cell, so that a single game does not make it strong."""
_WHOLE: Final = Number(0, factor=100)
_LEAD: Final = "How each agent did against each other one: where the order of the leaderboard comes from."
_PAIRS: Final = (
    Column("row", "Agent"),
    Column("column", "Against"),
    quantity(WON).column(),
    Column("games", "Games", COUNT),
    Column("won", "Won", COUNT),
    Column("tied", "Tied", COUNT),
    Column("lost", "Lost", COUNT),
    Column("apart", "Told apart", meaning="By the ratings, as by the groups of the leaderboard."),
)


class Wins(Board, frozen=True, eq=False):
    """Win matrix: results of every two agents that met in games.

    Attributes:
        order: the agents to show.
        apart: pairs that the ratings tell apart, the better agent first.
    """

    pairs: WinMatrix
    order: Sequence[str]
    apart: Collection[tuple[str, str]] = ()

    def sections(self) -> Sequence[Section]:
        return [Section("matrix", "Who beats whom", _LEAD, [self.percentages()])]

    def json(self) -> Any:
        return {"percent": plain(self._rows())}

    def percentages(self) -> Table:
        """Table with a row for each agent: the percentage of games won against each other agent, and the average.

        ``arena.data.verdicts`` reads this table. Ties count for neither side; a cell is empty if the two agents never
        met, and the average leaves such cells out (004, Table 5).
        """
        rows = [
            {key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}
            for row in self._rows()
        ]
        columns = [Column("agent", "Agent"), *(Column(name, name, POINTS) for name in self.order)]
        note = "Percentage of its games that the row's agent won outright; the rest are ties and losses. No win rate."
        return Table("matrix", "", [*columns, Column("average", "Average", POINTS)], rows, [note])

    def pairwise(self) -> Table:
        return Table("win-matrix", "", _PAIRS, list(self._met()))

    def picture(self, link: Callable[[str, str], str] = nowhere) -> Matrix:
        """Heat map of the win matrix; ``link`` returns the address of two agents' games."""
        cells, apart = {}, 0
        for pair in self._met():
            row, column, points = pair["row"], pair["column"], (2 * pair["share"] - 1) * pair["games"]
            is_clear = ((row, column) if points > 0 else (column, row)) in self.apart
            apart += pair["apart"]
            counts = ", ".join(f"{key} {COUNT.write(pair[key])}" for key in ("won", "tied", "lost"))
            cells[row, column] = MatrixCell(
                _WHOLE.write(pair["share"]),
                points / (pair["games"] + _FEW_GAMES) if is_clear else None,
                COUNT.write(pair["games"]),
                f"{row} against {column}: {counts}; {'' if pair['apart'] else 'not '}told apart",
                link=link(row, column),
            )
        caption = (
            "Win rate of the row's agent against the column's in percent, a tie half. Coloured: the ratings tell the "
            f"two apart, as the groups of the leaderboard say ({apart // 2:,} of {len(cells) // 2:,} pairs), and their "
            "games say the same; blue, the row's agent is better, orange, worse, pale on few or even games. Blank: "
            "they never met."
        )
        if link is not nowhere:
            caption += " A cell leads to the two agents' games."
        words = "Win matrix, row against column"
        return Matrix("win-matrix", "", words, caption, self.order, self.order, cells, "Row against column")

    def _met(self) -> Iterator[TableRow]:
        wins, index = self.pairs, self.pairs.agents.index
        for row, column in permutations(self.order, 2):
            at = index(row), index(column)
            if wins.games[at] > 0:
                won, tied, lost = wins.wins[at], wins.ties[at], wins.wins[at[::-1]]
                figures = {"share": (won + tied / 2) / wins.games[at], "games": wins.games[at], "won": won}
                numbers = {name: float(value) for name, value in (figures | {"tied": tied, "lost": lost}).items()}
                is_apart = (row, column) in self.apart or (column, row) in self.apart
                yield {"row": row, "column": column, **numbers, "apart": is_apart}

    def _rows(self) -> list[TableRow]:
        won = {(pair["row"], pair["column"]): 100 * pair["won"] / pair["games"] for pair in self._met()}
        rows = []
        for agent in self.order:
            shares = {opponent: won.get((agent, opponent)) for opponent in self.order}
            known = [share for share in shares.values() if share is not None]
            rows.append({"agent": agent, **shares, "average": sum(known) / len(known) if known else None})
        return rows


def tournament_pairs(store: Store, tournament: str) -> WinMatrix | None:
    """Win matrix of a tournament's rated games; ``None`` if no game has a verdict."""
    games = cached_games(store, tournament).rated(rating_settings(store.settings(tournament)))
    return None if games is None else win_matrix(games)


def as_declared(board: Leaderboard) -> list[str]:
    """The rated agents in the configuration's order; then the agents that it does not list, best rated first."""
    rated = [row.agent for row in board.ratings.agents] if board.ratings else []
    stated = [agent.name for agent in board.settings.agents if agent.name in rated]
    return list(dict.fromkeys([*stated, *rated]))


def by_points(wins: WinMatrix) -> list[str]:
    """Agents by share of points, largest first; a win counts 1, a tie half."""
    share = (wins.wins + wins.ties / 2).sum(axis=1) / wins.games.sum(axis=1)
    return [wins.agents[number] for number in np.argsort(-share, kind="stable")]
