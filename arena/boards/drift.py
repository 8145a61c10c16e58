"""Board of judges asked again since their card: whether each drifted, which labels moved, and agents on both dates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from arena.calibration import ItemKey
from arena.calibration.votes import Level
from arena.data.kinds import kind_of
from arena.present.blocks import Block, Board, Remarks, Section
from arena.present.numbers import COUNT, MONEY, P_VALUE, PERCENT, SIGNED_2, capital, counted, listed
from arena.present.table import INTERVAL, Column, Table, flat, plain
from arena.run.drift import AskedAgain

_MOST: Final = 20
_COLUMNS: Final = (
    Column("judge", "Judge"),
    Column("level", "Judged"),
    Column("n", "Things", COUNT, "Labelled by people, and judged on both dates."),
    Column("queries", "Queries", COUNT),
    Column("moved", "Moved", PERCENT, "Labels that are not what they were.", INTERVAL),
    Column("then", "Agreed then", PERCENT, "Agreement with people's labels, on the card's date."),
    Column("now", "Agrees now", PERCENT),
    Column("difference", "Difference", SIGNED_2, "Agreement now minus then.", "97.5% interval"),
    Column("shift", "Mean label", SIGNED_2, "Now minus then.", "97.5% interval"),
    Column("p", "p", P_VALUE, "Sign-flip test by query; of two tests the smaller p, corrected (Holm)."),
    Column("verdict", "Result"),
    Column("least", "Would find", PERCENT, "The smallest change of agreement found with 80% probability."),
)
_AGENTS: Final = (
    Column("agent", "Mean of"),
    Column("then", "Mean then", SIGNED_2, "Mean score by this judge, on the card's date.", INTERVAL),
    Column("now", "Mean now", SIGNED_2, "", INTERVAL),
    Column("anew", "Judged anew", PERCENT, "Share of its judgments that are not those of then."),
    Column("of_judge", "Judge's part", SIGNED_2, "The judge's drift in this mean.", INTERVAL),
    Column("change", "Without it", SIGNED_2, "Now minus then minus the judge's part.", INTERVAL),
    Column("why", "Not corrected"),
)


class DriftBoard(Board, frozen=True):
    """Judges that were asked again."""

    asked: Sequence[AskedAgain]

    def sections(self) -> Sequence[Section]:
        rows = [flat(each.drift) | {"judge": each.judge, "level": each.level} for each in self.asked]
        blocks: list[Block] = [Remarks([*self._lines()]), Table("drift", "Then and now", _COLUMNS, rows)]
        for each in self.asked:
            name = f"{each.judge}-{each.level}"
            if labels := each.drift.labels:
                columns = [
                    Column("query_id", "Query"),
                    *(Column(key, key.capitalize()) for key in ("item", "then", "now")),
                ]
                moved = [
                    {"query_id": label.query_id, "item": " / ".join(label.item)}
                    | {key: _word(each.level, label.item, getattr(label, key)) for key in ("then", "now")}
                    for label in labels[:_MOST]
                ]
                more = len(labels) - _MOST
                notes = [f"And {COUNT.write(more)} more: --format json has all."] if more > 0 else []
                blocks.append(Table(f"moved-{name}", f"Labels that moved: {each.judge}", columns, moved, notes))
            if each.agents:
                title = f"Agents on both dates, by {each.judge}"
                blocks.append(Table(f"dates-{name}", title, _AGENTS, [flat(agent) for agent in each.agents]))
        return [Section("drift", "Did the judge change?", "", blocks)]

    def _lines(self) -> Iterator[str]:
        for each in self.asked:
            cost = "at an unknown price" if each.cost_usd is None else f"for {MONEY.write(each.cost_usd)}"
            line = f"{each.judge} ({each.level}), since the card of {each.made}: {each.drift.verdict}. "
            line += f"{counted(each.asked, 'judgment')} asked again {cost}"
            line += f", {each.failed} without a result." if each.failed else "."
            then, now = map(listed, each.models) if all(each.models) else ("", "")
            yield line + (f" Then {then} replied, now {now}." if then != now else "")
            if each.drift.verdict == "drifted":
                corrected = [agent for agent in each.agents if not agent.why]
                whys = listed(sorted({agent.why for agent in each.agents if agent.why}) or ["no agent has a mean"])
                if not corrected:
                    yield f"No change of an agent can be corrected for it: {whys}."
            elif each.drift.verdict == "no drift found":
                yield "Differences over these dates are not corrected for it."
            else:
                yield capital("too few queries to tell: let people label things on ten queries and more.")

    def json(self) -> Any:
        return plain(self.asked)


def _word(level: Level, item: ItemKey, value: float) -> str:
    if level == "verdicts":
        return {1: item[-2], -1: item[-1]}.get(round(value), "tie")
    return kind_of(level).words.get(value, f"{value:g}")
