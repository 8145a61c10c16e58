"""Tables of verdicts: ours, and the ones other tools and studies write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Final

from arena.ratings.games import GameVerdict
from judges.errors import DataError
from judges.types import Verdict
from retrieval_eval.data.rows import Cell, Row, missing_column, table_format
from retrieval_eval.data.tables import read_rows, write_rows

ALIASES: Final[Mapping[str, Sequence[str]]] = {
    "qid": ("query_id", "question_id", "prompt_id", "prompt", "iid"),
    "agent_a": ("model_a", "system_a", "left", "baseline"),
    "agent_b": ("model_b", "system_b", "right", "model"),
    "verdict": ("winner", "vote", "preference", "answer"),  # the last is RAGElo's
    "judge": ("worker", "annotator"),
    "order": ("baseline_shown",),
    "reason": ("raw_answer",),
    "p_a": (),
    "p_b": (),
    "p_tie": (),
}
"""Other spellings of the columns, best first, accepted where the column itself is absent."""

VERDICT_CELLS: Final = ("agent_a", "agent_b", "verdict", "judge", "order")
"""What a table says of a game besides its query; ``order`` is that in which the row names the agents."""

BOTH_ORDERS: Final = ("winner_ab", "winner_ba")
"""Two verdicts in one row: with agent_a shown first, and with agent_b shown first."""

_LETTERS: Final = {"a": Verdict.A, "b": Verdict.B, "1": Verdict.A, "2": Verdict.B}
_COLUMN_WORDS: Final = {"agent_a": Verdict.A, "agent_b": Verdict.B, "model_a": Verdict.A, "model_b": Verdict.B}
_PLACE_WORDS: Final = {"left": Verdict.A, "right": Verdict.B, "first": Verdict.A, "second": Verdict.B}
_TIES: Final = {"tie", "draw", "c", "n", "tie (bothbad)", "tie (inconsistent)", "inconsistent"}
_BIT: Final = {verdict: 1 << place for place, verdict in enumerate(Verdict)}
"""A set of verdicts as a number: there may be as many sets as games."""
_OWN: Final = frozenset(Verdict)
_ROUNDING: Final = 0.01
"""By which rounded probabilities may miss 1."""
_NO_VERDICT: Final = {"", "error", "nan"}
_SHOWN_SWAPPED: Final = {"ab": False, "ba": True, "1": False, "2": True, "first": False, "second": True}


@dataclass(frozen=True)
class ImportedVerdicts:
    """The games of a file, and what was noticed on the way.

    Attributes:
        verdicts: one per game as it was shown, in the order of the file.
        extras: further columns (``reason`` among them) as text, aligned with ``verdicts``; ``""`` where absent.
        rows: rows of the file.
        skipped: games left out because the file gives no verdict.
        self_play: games left out because an agent plays itself.
        duplicates: verdicts that repeat an earlier one in every column, reasons aside.
        conflicts: games, the same in every column but verdict and reason, that have different verdicts.
        order_unknown: verdicts whose ``order`` is empty; agent_a is taken to have been shown first.
        order_assumed: verdicts of rows without a column of the order; the same is taken for granted.
        swapped: for each verdict, whether the file's agent_b was shown first.
        order_known: for each verdict, whether its ``order`` is given, or the file has no such column.
        lines: for each verdict, the line of the file it stands on; in Parquet the row.
    """

    verdicts: Sequence[GameVerdict]
    extras: Mapping[str, Sequence[str]]
    rows: int
    skipped: int = 0
    self_play: int = 0
    duplicates: int = 0
    conflicts: int = 0
    order_unknown: int = 0
    order_assumed: int = 0
    swapped: Sequence[bool] = ()
    order_known: Sequence[bool] = ()
    lines: Sequence[int] = ()


def read_verdicts(
    path: Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    skip_empty: bool = False,
    skip_self_play: bool = False,
    preferences: bool = False,
) -> ImportedVerdicts:
    """Read a table of verdicts from CSV, TSV, JSONL or Parquet.

    Columns are ``agent_a, agent_b, verdict`` and optionally ``qid, judge, order, reason``, or their ``ALIASES``; a
    table with ``BOTH_ORDERS`` instead of a verdict gives two games a row. ``agent_a`` was shown first unless ``order``
    says ``ba`` (or ``2`` or ``second``: the place where agent_a was shown).

    A verdict is read without regard to case, and what it points at depends on the word:

    - ``A``, ``B``, ``1``, ``2`` mean the *columns* agent_a and agent_b, whatever the order; in ``BOTH_ORDERS`` they
      mean the answer shown first and second, as in the records of MT-bench judges;
    - ``agent_a``, ``model_a`` and so on, or the agent's own name, mean that agent;
    - ``left``, ``right``, ``first``, ``second`` mean the place where the answer was shown;
    - ``TIE``, ``draw``, ``C``, ``N``, ``tie (bothbad)``, ``tie (inconsistent)``, ``inconsistent`` are ties;
    - in a column ``preference`` (AlpacaEval) a number from 1 for agent_a to 2 for agent_b goes to the nearer one;
      1.5 and 0 are ties. Elsewhere 0 is refused: some tables mean a tie by it, some a loss.

    With ``preferences`` the probability that agent_a's answer is the better one is read as well: from ``p_a``, with
    ``p_b`` and ``p_tie`` if they are there (a tie counts as half), else from a column ``preference``. Where there is
    no verdict it is what that probability says. A row without one has its verdict alone.

    Args:
        path: the file.
        columns: the file's name for a column, where neither name nor alias fits: ``{"verdict": "gold"}``.
        skip_empty: leave out and count games with an empty verdict, ``error`` or ``nan`` instead of refusing them.
        skip_self_play: leave out and count games of an agent against itself, as in AlpacaEval's baseline against its
            own answers, instead of refusing them.
        preferences: read how sure the judge is.

    Raises:
        DataError: the file cannot be read, a column is missing, an agent has no name or plays itself, or a verdict or
            order is none of the above.
    """
    verdicts: list[GameVerdict] = []
    extras: dict[str, list[str]] = {}
    swapped: list[bool] = []
    order_known: list[bool] = []
    lines: list[int] = []
    seen: defaultdict[tuple[str | None, ...], int] = defaultdict(int)
    layouts: dict[tuple[str, ...], _Layout] = {}  # lines of JSONL may differ in their columns
    rows = skipped = self_play = order_assumed = 0
    for row in read_rows(path):
        rows += 1
        header = tuple(row.values)
        if header not in layouts:
            layouts[header] = _Layout.of(row, columns or {}, preferences=preferences)
        layout = layouts[header]
        if skip_self_play and row.identifier(layout.agent_a) == row.identifier(layout.agent_b):
            self_play += len(layout.verdicts)
            continue
        further = {name: row.text(column) for name, column in layout.extras.items()}
        distinguishing = [text for name, text in further.items() if name != "reason"]
        for game in _games(row, layout, skip_empty=skip_empty):
            if game is None:
                skipped += 1
                continue
            for name, text in further.items():
                _padded(extras.setdefault(name, []), len(verdicts)).append(text)
            verdicts.append(game)
            swapped.append(game.agent_a != row.identifier(layout.agent_a))
            order_known.append(layout.order is None or bool(row.text(layout.order).strip()))
            order_assumed += layout.order is None and len(layout.verdicts) == 1
            lines.append(row.line)
            seen[game.query_id, game.agent_a, game.agent_b, game.judge, *distinguishing] |= _BIT[game.verdict]
    duplicates = len(verdicts) - sum(found.bit_count() for found in seen.values())
    conflicts = sum(found.bit_count() > 1 for found in seen.values())
    aligned = {name: _padded(column, len(verdicts)) for name, column in extras.items()}
    return ImportedVerdicts(
        verdicts,
        aligned,
        rows,
        skipped=skipped,
        self_play=self_play,
        duplicates=duplicates,
        conflicts=conflicts,
        order_unknown=order_known.count(False),
        order_assumed=order_assumed,
        swapped=swapped,
        order_known=order_known,
        lines=lines,
    )


def verdict_cells(game: GameVerdict) -> dict[str, Cell]:
    """A game as it was shown, without its query, under the names of ``VERDICT_CELLS``."""
    cells = (game.agent_a, game.agent_b, game.verdict.value, game.judge, "ab")
    return dict(zip(VERDICT_CELLS, cells, strict=True))


def write_verdicts(path: Path | str, verdicts: Sequence[GameVerdict]) -> None:
    """Write a table of verdicts that ``read_verdicts`` gives back equal.

    Args:
        path: the file; its extension says the format.
        verdicts: the games as they were shown, so ``order`` is always ``ab``.

    Raises:
        DataError: the file cannot be written.
        ValueError: some games have a query and others do not.
    """
    queries = [game.query_id for game in verdicts if game.query_id is not None]
    if queries and len(queries) < len(verdicts):
        raise ValueError("either every game has a query or none has")
    key = ("qid",) if queries else ()
    rows = (dict.fromkeys(key, game.query_id) | verdict_cells(game) for game in verdicts)
    write_rows(path, (*key, *VERDICT_CELLS), rows)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which column of the file holds what."""

    agent_a: str
    agent_b: str
    verdicts: Sequence[str]
    qid: str | None
    judge: str | None
    order: str | None
    extras: Mapping[str, str]
    """Further columns: the name they get, and the file's."""
    shares: Sequence[str | None] = ()
    """Where the probabilities of p_a, p_b and p_tie stand, empty where they are not read."""

    @staticmethod
    def of(row: Row, columns: Mapping[str, str], *, preferences: bool) -> _Layout:
        if unknown := columns.keys() - ALIASES.keys():
            raise DataError(row.path, f"no such column to map; choose from {', '.join(ALIASES)}", value=min(unknown))
        header, line = list(row.values), row.line if table_format(row.path) == "jsonl" else None
        for column in columns.values():
            if column not in header:
                raise missing_column(row.path, column, header, line)
        found = {name: _find(name, header, columns) for name in ALIASES}
        shares = [found[name] for name in ("p_a", "p_b", "p_tie")] if preferences else []
        if preferences and found["p_a"] is None and found["verdict"] != "preference":
            raise missing_column(row.path, "p_a", header, line)
        both = found["verdict"] is None and set(BOTH_ORDERS) <= set(header) and not preferences
        for name in ("agent_a", "agent_b", "verdict"):
            if found[name] is None and not ((both or any(shares)) and name == "verdict"):
                raise missing_column(row.path, name, header, line)
        verdicts = BOTH_ORDERS if both else (found["verdict"] or str(found["p_a"]),)
        order = None if both else found["order"]
        used = {found[name] for name in ("qid", "agent_a", "agent_b", "judge")} | {*verdicts, order}
        extras = {"reason" if column == found["reason"] else column: column for column in header if column not in used}
        sides = str(found["agent_a"]), str(found["agent_b"])
        return _Layout(*sides, verdicts, found["qid"], found["judge"], order, extras, shares)


def _padded(column: list[str], length: int) -> list[str]:
    column.extend([""] * (length - len(column)))
    return column


def _find(name: str, header: Sequence[str], columns: Mapping[str, str]) -> str | None:
    if name in columns:
        return columns[name]
    taken = set(columns.values())
    return next((column for column in (name, *ALIASES[name]) if column in header and column not in taken), None)


def _games(row: Row, layout: _Layout, *, skip_empty: bool) -> Iterator[GameVerdict | None]:
    """The one or two games of a row, as shown; ``None`` for one without a verdict."""
    agent_a, agent_b = intern(row.identifier(layout.agent_a)), intern(row.identifier(layout.agent_b))
    if agent_a == agent_b:
        raise row.error("an agent plays against itself: remove the row, or have such rows skipped", agent_a)
    query_id = intern(row.identifier(layout.qid)) if layout.qid is not None else None
    judge = intern(row.text(layout.judge)) if layout.judge is not None else ""
    for column in layout.verdicts:
        swapped = column == BOTH_ORDERS[1] or _shown_swapped(row, layout.order)
        text = row.text(column).strip()
        if text.casefold() in _NO_VERDICT:
            if not skip_empty:
                raise row.error(f"no verdict in {column!r}: remove the row, or have such rows skipped", text)
            yield None
            continue
        preference = _preference(row, layout, column, text)
        if column in layout.shares and preference is not None:
            verdict = _nearest(preference).swapped() if swapped else _nearest(preference)
        else:
            verdict = _verdict_as_shown(row, column, text, (agent_a, agent_b), swapped=swapped)
        first, second = (agent_b, agent_a) if swapped else (agent_a, agent_b)
        if preference is not None and swapped:
            preference = 1 - preference
        yield GameVerdict(query_id, first, second, verdict, judge, preference)


def _preference(row: Row, layout: _Layout, verdict: str, said: str) -> float | None:
    """Probability that agent_a's answer is the better one; ``None`` where the row has none, or it is not read."""
    if not layout.shares:
        return None
    if layout.shares[0] is None:
        number = _number(said)
        if verdict != "preference" or number is None:
            return None
        return 0.5 if number == 0 else min(max(2 - number, 0.0), 1.0)
    found = [None if column is None else _share(row, column) for column in layout.shares]
    of_a, of_b, of_tie = found
    if of_a is None:
        return None
    total = of_a + (of_tie or 0.0) + (of_b or 0.0)
    if total > 1 + _ROUNDING or (of_b is not None and total < 1 - _ROUNDING):
        raise row.error(f"probabilities of one verdict must sum to 1, and these to {total:.6g}", row.text("p_a"))
    return (of_a + (of_tie or 0.0) / 2) / (total if of_b is not None else max(1.0, total))


def _share(row: Row, column: str) -> float | None:
    text = row.text(column).strip()
    if not text:
        return None
    share = _number(text)
    if share is None or not 0 <= share <= 1:
        raise row.error(f"{column!r} must be a probability from 0 to 1", text)
    return share


def _nearest(preference: float) -> Verdict:
    """What a preference for agent_a comes to as a verdict."""
    return Verdict.TIE if preference == 0.5 else Verdict.A if preference > 0.5 else Verdict.B


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _shown_swapped(row: Row, column: str | None) -> bool:
    text = row.text(column).strip() if column is not None else ""
    if not text:
        return False
    if text.casefold() not in _SHOWN_SWAPPED:
        raise row.error(f"{column!r} must be one of {', '.join(_SHOWN_SWAPPED)}", text)
    return _SHOWN_SWAPPED[text.casefold()]


def _verdict_as_shown(row: Row, column: str, text: str, agents: tuple[str, str], *, swapped: bool) -> Verdict:
    """A for the answer shown first, B for the second."""
    meant = _preferred(text) if column == "preference" else None
    meant = meant or _side_of_word(text.casefold(), letters_are_places=column in BOTH_ORDERS, swapped=swapped)
    named = {agents[0]: Verdict.A, agents[1]: Verdict.B}.get(text)
    # In our own tables A, B and TIE keep their meaning even where agents are called so.
    own = column == "verdict" and text in _OWN
    if meant is not None and named not in {None, meant} and not own:
        raise row.error("the winner is the name of one agent and a word for something else", text)
    meant = meant or named
    if meant is None:
        raise row.error(f"{column!r} must be A, B, TIE, or the name of one of the two agents", text)
    return meant.swapped() if swapped else meant


def _side_of_word(word: str, *, letters_are_places: bool, swapped: bool) -> Verdict | None:
    """Which column's agent a word for a side means; ``swapped`` if agent_b was shown first."""
    if word in _TIES:
        return Verdict.TIE
    side = _PLACE_WORDS.get(word) or _LETTERS.get(word) or _COLUMN_WORDS.get(word)
    is_place = word in _PLACE_WORDS or (word in _LETTERS and letters_are_places)
    return side.swapped() if side is not None and is_place and swapped else side


def _preferred(text: str) -> Verdict | None:
    preference = _number(text)
    if preference is None:
        return None
    if preference in {0.0, 1.5}:
        return Verdict.TIE
    if not 1 <= preference <= 2:
        return None
    return Verdict.A if preference < 1.5 else Verdict.B
