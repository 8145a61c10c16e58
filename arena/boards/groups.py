"""Groups of queries on boards: the leader on each group, the trust check on it, and what a board of one group says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from arena.present.blocks import Check, Section
from arena.present.numbers import COUNT, P_VALUE, PERCENT, counted, listed, with_interval
from arena.present.table import Column, Table, fields, first
from retrieval_eval.stats.bootstrap import FEW_QUERIES

if TYPE_CHECKING:
    from arena.data.dataset import Group
    from arena.results.groups import GroupShare, LeaderByGroup

_NAMED: Final = 5
_SHOWN: Final = 20
"""Maximum number of rows that people see; JSON has all."""
GROUPS_AHEAD: Final = "Result by group of queries"


def with_group(name: str, group: Group | None) -> str:
    """``name`` of a tournament or sentence, with the group of queries to which it is restricted."""
    return name if group is None else f"{name} where {'='.join(group)}"


def one_of_groups(group: Group | None, groups: int) -> list[str]:
    """The sentence on a board of one group, which may have been chosen from ``groups`` by its results."""
    if group is None:
        return []
    return [
        f"Only queries where {'='.join(group)}: one of {counted(groups, 'group')}. If its results made you choose it, "
        f"its intervals are too narrow; '--by {group[0]}' corrects for that."
    ]


def groups_section(groups: LeaderByGroup, noun: tuple[str, str]) -> Section:
    rows = [
        fields(row, "name", "column", "value", "other", "share", "shrunk", "overall")
        | {"queries": row.share.n, "verdict": _verdict(row)}
        for row in groups.shares
    ]
    columns = (
        Column("name", "Group", programs=False),
        Column("column", ""),
        Column("value", ""),
        Column("other", "Against"),
        Column("queries", noun[1].capitalize(), COUNT),
        Column("share", "Leader's share", PERCENT, "Of the points in their games; a tie counts half.", "Interval"),
        Column("shrunk", ""),
        Column("overall", "On all", PERCENT, "The leader's share on all queries."),
        Column("verdict", "Leader"),
    )
    lead = f"{groups.leader} against each agent on each group. The worst of several groups looks worse than it is."
    notes = [
        f"All intervals hold together (Holm, over the groups of {listed(groups.columns)}); groups of fewer than "
        f"{FEW_QUERIES} {noun[1]} are not tested."
    ]
    if groups.interaction is not None:
        p = P_VALUE.write(groups.interaction)
        notes += [f"Does the leader's share depend on {groups.columns[0]}? A permutation test says p {p}."]
    table = Table("groups", "The leader by group of queries", columns, rows, notes)
    return Section("groups", "By group of queries", lead, [first(table, _SHOWN, "in JSON")])


def _verdict(row: GroupShare) -> str:
    if row.few:
        return "too few to tell"
    low, high = row.share.low or 0, row.share.high or 1
    return "worse" if high < 0.5 else "better" if low > 0.5 else "undecided"


def groups_json(groups: LeaderByGroup | None) -> dict[str, Any] | None:
    if groups is None:
        return None
    return fields(groups, "leader", "columns", "interaction") | {
        "shares": [
            fields(row, "column", "value", "other", "shrunk", "overall")
            | {"share": row.share.value, "low": row.share.low, "high": row.share.high, "queries": row.share.n}
            | {"verdict": _verdict(row)}
            for row in groups.shares
        ]
    }


def groups_check(groups: LeaderByGroup, noun: tuple[str, str]) -> Check:
    """Whether another agent beats the leader on some group of queries, which the figures over all queries hide."""
    few = f" Too few queries to tell: {listed(groups.few, _NAMED)}." if groups.few else ""
    tested, columns = len(groups.tested), listed(groups.columns, _NAMED)
    if groups.reversed:
        finding = "; ".join(
            f"{groups.leader} wins {with_interval(row.share, PERCENT)} of the points against {row.other} where "
            f"{row.name} ({counted(row.share.n or 0, *noun)}), and {PERCENT.write(row.overall)} on all"
            for row in groups.reversed[:_NAMED]
        )
        finding += "."
    elif tested:
        finding = (
            f"{groups.leader} leads, and no agent beats it by more than chance on any of {counted(tested, 'group')} of "
            f"queries by {columns}."
        )
    else:
        finding, few = f"No group of queries by {columns} has {FEW_QUERIES} queries.", ""
    return Check(
        GROUPS_AHEAD,
        "failed" if groups.reversed else "passed" if tested else "unknown",
        f"{finding}{few}",
        "Decide per group: 'ragleague leaderboard --group COLUMN=VALUE' rates the agents on it alone."
        if groups.reversed
        else "Add queries of each group.",
    )
