"""Lists of nuggets: which answer states which nugget, what people changed, and what that does to the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from arena.boards.nuggets import SCORES
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, MISSING, SCORE
from arena.present.picture import Cell, Matrix
from arena.present.table import Column, Table
from retrieval_eval.nuggets.editing import HISTORY, Change, Kind, changes, is_reordered
from retrieval_eval.nuggets.scores import RunScores
from retrieval_eval.nuggets.types import Assignment, NuggetBank, Support

Row: TypeAlias = dict[str, Any]

_SUPPORT: Final[Mapping[Support | None, tuple[str, Cell]]] = {
    Support.FULL: ("support", Cell("●", 1)),
    Support.PARTIAL: ("partial support", Cell("◐", 0.4)),
    Support.NONE: ("no support", Cell("○")),
    None: ("not known", Cell("?", -0.4)),
}
_EDITS: Final = (
    Column("kind", "Change"),
    Column("query", "Query"),
    Column("when", "When"),
    Column("who", "Who"),
    Column("before", "Before"),
    Column("after", "After"),
    Column("importance", "Importance"),
)


def support_words(label: Support | None) -> str:
    """A label in words."""
    return _SUPPORT[label][0]


def support_blocks(bank: NuggetBank, labels: Mapping[str, Assignment], agents: Sequence[str]) -> list[Block]:
    """A query's nuggets, how many answers state each and what each agent's does: in words, and as signs."""
    columns = [
        Column("number", "Number", COUNT),
        Column("nugget", "Nugget"),
        Column("importance", "Importance"),
        Column("stated", "Stated by", COUNT, "Answers that state the whole nugget."),
        *(Column(f"agent {agent}", f"agent {agent}") for agent in agents),
    ]
    rows: list[Row] = []
    cells = {}
    for place, nugget in enumerate(bank.nuggets):
        said = {agent: labels[agent].labels[place] for agent in agents}
        row = {"number": place + 1, "nugget": nugget.text, "importance": nugget.importance or "not known"}
        row["stated"] = sum(label is Support.FULL for label in said.values())
        for agent, label in said.items():
            words, sign = _SUPPORT[label]
            row[f"agent {agent}"] = words
            cells[str(place + 1), agent] = replace(sign, told=f"{nugget.text}: {agent}, {words}")
        rows.append(row)
    signs = "Signs: " + ", ".join(f"{sign.figure} {words}" for words, sign in _SUPPORT.values()) + "."
    numbers = [str(row["number"]) for row in rows]
    title = "Which answer states which nugget"
    picture = [Matrix("support", "", title, signs, numbers, agents, cells, "Nugget")] if agents else []
    return [Table("nuggets", "", columns, rows), *picture]


@dataclass(frozen=True, slots=True)
class NuggetEdits(Board):
    """What people made of lists of nuggets.

    Attributes:
        file: that holds the edited lists.
        changes: by query.
        not_in_edited_file: queries that stay as they were.
    """

    file: str
    changes: Mapping[str, Sequence[Change]]
    not_in_edited_file: Sequence[str]

    def sections(self) -> list[Section]:  # noqa: D102
        rows = [{"query": query_id, **row} for query_id, own in self.changes.items() for row in _edits(own)]
        counts = Counter(change.kind for own in self.changes.values() for change in own)
        told = ", ".join(f"{number} {kind.value}" for kind in Kind if (number := counts[kind]))
        said = [f"wrote {self.file}: {told or 'no nuggets'}"]
        if self.not_in_edited_file:
            said.append(f"- not in the edited file, kept as they were: {', '.join(self.not_in_edited_file)}")
        return [Section("edits", "Edits", "", [Table("edits", "", _EDITS, rows), Remarks(said)])]


def edits_table(before: NuggetBank, after: NuggetBank) -> Table:
    """What an edit does to one list, without what it keeps."""
    notes = ["The nuggets stand in another order."] if is_reordered(before, after) else []
    return Table("your-changes", "Your changes", _EDITS, list(_edits(changes(before, after))), notes)


def history_table(bank: NuggetBank) -> Table:
    """The edits that a file tells of a query's nuggets, the latest first; what is no edit is left out."""
    edits = bank.details.get(HISTORY)
    rows = []
    for edit in reversed(edits if isinstance(edits, list) else []):
        if isinstance(edit, Mapping):
            who = {"when": str(edit.get("at", "")), "who": str(edit.get("by", ""))}
            done = edit.get("changes")
            rows += [who | _edit(one) for one in (done if isinstance(done, list) else []) if isinstance(one, Mapping)]
            rows += [who | {"kind": "reordered"}] if edit.get("reordered") is True else []
    return Table("history-of-the-nuggets", "", _EDITS, rows)


def preview_table(before_and_after: Sequence[tuple[RunScores, RunScores]]) -> Table:
    """V strict and All of each agent before and after an edit; both ends where labels are still to be assigned."""
    shown = {key: SCORES[key][0] for key in ("v_strict", "a")}
    columns = [
        Column("agent", "Agent"),
        *(Column(f"{key}_{at}", f"{head} {at}") for key, head in shown.items() for at in ("before", "after")),
        Column("open", "To be assigned", COUNT, "Labels that the next run asks a judge for."),
    ]
    rows = [
        {
            "agent": before.run,
            **{f"{key}_{at}": _mean(own, key) for key in shown for at, own in (("before", before), ("after", after))},
            "open": after.labels - after.assigned,
        }
        for before, after in before_and_after
    ]
    note = (
        "Scores over all queries as of the last run, and with these nuggets. Labels of nuggets whose text stays are "
        "known. Where others are still to be assigned, the ends of what they may come to are shown."
    )
    return Table("scores-before-and-after", "Scores before and after", columns, rows, [note])


def _edits(done: Sequence[Change]) -> Iterator[Row]:
    return (_edit(asdict(change)) for change in done if change.kind is not Kind.KEPT)


def _edit(change: Mapping[str, Any]) -> Row:
    """One edit, as ``Change`` or a file has it."""
    texts, old, new = change.get("before"), change.get("importance_before"), change.get("importance")
    same = old is None or new is None or old == new
    return {
        "kind": str(change.get("kind", "")),
        "before": " + ".join(map(str, texts)) if isinstance(texts, list | tuple) else str(texts or ""),
        "after": str(change.get("after") or ""),
        "importance": str(new or old or "not known") if same else f"{old} to {new}",
    }


def _mean(own: RunScores, key: str) -> str:
    mean = own.means[key]
    if own.assigned == own.labels:
        return SCORE.write(mean.value)
    return MISSING if mean.lowest is None else SCORE.between(mean.lowest, mean.highest)
