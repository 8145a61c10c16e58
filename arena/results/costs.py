"""What answers took: seconds, tokens and dollars of each agent, and on how many queries there is an answer at all.

A leaderboard shows it per agent, with the fronts of quality against price, the agents that nobody beats in both, and
what that means where quality ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from arena.data.dataset import COST, LATENCY, TOKENS_IN, TOKENS_OUT, TRIED, Causes, Dataset
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, MONEY, POINTS, SECONDS, counted, listed
from arena.present.table import Column, Table, plain, records
from arena.ratings.results import AgentRating
from judges.types import Answer
from retrieval_eval.stats.bootstrap import units_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arena.present.picture import Chart

_ALPHA: Final = 0.05
_SHORTEST: Final = 0.001
"""Seconds below which latencies are alike."""
_NAMED: Final = 5
"""Agents named in a sentence; the others are counted."""
_LATENCY: Final = (
    "Median, from sending the request to the end of the answer; waiting for a turn and failed attempts are not in it."
)
_COLUMNS: Final = (
    Column("agent", "Agent"),
    Column("answered", "Answered", COUNT, "Queries with an answer; games are played where both agents answered."),
    Column("queries", "Queries", COUNT),
    Column("latency_median_s", "Latency, median", SECONDS, _LATENCY),
    Column("latency_p95_s", "Latency, 95%", SECONDS, "95% of the answers took no longer."),
    Column("latency_known", "Latency known", COUNT, "Answers whose latency is known; the others are left out."),
    Column("retried", ""),
    Column("tried_median_s", ""),
    Column("cost_usd", "Cost of a query", MONEY, "Mean over the answers whose cost is known."),
    Column("cost_known", "Cost known", COUNT, "Answers whose cost is known; the others are left out."),
    Column("input_tokens", "Tokens in", POINTS, "Mean over the answers whose tokens are known."),
    Column("output_tokens", "Tokens out", POINTS, "Mean over the answers whose tokens are known."),
    Column(
        "on_front", "Front", meaning="By these figures, no agent is rated as high and takes as little.", programs=False
    ),
    Column("front", ""),
    Column("missing", "Why not answered", meaning="How often each cause left a query open.", programs=False),
)


class CostMean(Struct, frozen=True):
    """Over those of an agent's answers that have a figure, and how many they are."""

    mean: float | None = None
    known: int = 0


class Median(Struct, frozen=True):
    """The same for seconds."""

    median: float | None = None
    known: int = 0


class Latency(Median, frozen=True):
    """The same, and the 95th percentile."""

    p95: float | None = None


class AgentCosts(Struct, frozen=True):
    """What one agent's answers took. A figure that an answer does not have is left out and counted, never 0.

    Attributes:
        queries: of the tournament.
        answered: of these, with an answer.
        missing: why it has no answer where we asked it ourselves.
        latency_s: seconds an answer took, as its user sees them: from the request to the end of the answer.
        retried: answers before which attempts failed.
        tried_s: seconds of all attempts at an answer together, without the waits between them; where nobody
            counted these, the answer's latency.
        cost_usd: dollars an answer cost.
        input_tokens, output_tokens: tokens an answer took.
    """

    agent: str
    queries: int
    answered: int
    latency_s: Latency = Latency()
    cost_usd: CostMean = CostMean()
    input_tokens: CostMean = CostMean()
    output_tokens: CostMean = CostMean()
    missing: Causes = field(default_factory=dict)
    retried: int = 0
    tried_s: Median = Median()

    @property
    def known(self) -> bool:
        """Whether any answer has any figure."""
        return any(one.known for one in (self.latency_s, self.cost_usd, self.input_tokens, self.output_tokens))


def agent_costs(data: Dataset, failed: Mapping[str, Causes]) -> tuple[AgentCosts, ...]:
    """What each agent's answers took, by name.

    The figures are those that an answer carries as metadata: a table of answers may have the columns ``latency_s``,
    ``tried_s``, ``cost_usd``, ``input_tokens`` and ``output_tokens``, and replies of agents that we ask have them.
    ``failed`` are the agents that we ask, with the causes of the answers they owe.
    """
    answers: dict[str, list[Answer]] = {agent: [] for agent in sorted({*data.agents, *failed})}
    for (_, agent), answer in data.answers.items():
        answers[agent].append(answer)
    return tuple(
        _costs(agent, own, len(data.queries), failed.get(agent, {}))
        for agent, own in answers.items()
        if own or agent in failed
    )


def _costs(agent: str, answers: Iterable[Answer], queries: int, missing: Causes) -> AgentCosts:
    import numpy as np

    own = list(answers)
    latencies = _values(own, LATENCY)
    median, p95 = np.percentile(latencies, (50, 95)).tolist() if latencies else (None, None)
    both = [(_number(answer.metadata.get(LATENCY)), _number(answer.metadata.get(TRIED))) for answer in own]
    tried = [taken for answer in own if (taken := _taken(answer, LATENCY)) is not None]
    return AgentCosts(
        agent,
        queries,
        len(own),
        Latency(median, len(latencies), p95),
        _mean(own, COST),
        _mean(own, TOKENS_IN),
        _mean(own, TOKENS_OUT),
        dict(missing),
        sum(latency is not None and all_s is not None and all_s > latency for latency, all_s in both),
        Median(float(np.median(tried)) if tried else None, len(tried)),
    )


def _mean(answers: Iterable[Answer], name: str) -> CostMean:
    values = _values(answers, name)
    return CostMean(math.fsum(values) / len(values) if values else None, len(values))


def _values(answers: Iterable[Answer], name: str) -> list[float]:
    return [value for answer in answers if (value := _number(answer.metadata.get(name))) is not None]


_MOST: Final = 1e15
"""Of seconds, dollars or tokens: more is none of these."""


def _number(text: str | None) -> float | None:
    """The figure; ``None`` for what is none, which a column of that name may hold by chance."""
    try:
        value = math.nan if text is None else float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None


class Front(Struct, frozen=True):
    """The Pareto front of rating and one price.

    Attributes:
        price: ``latency_s``, the median with failed attempts, or ``cost_usd``, the mean of an answer.
        points: of every agent that has both: its Bradley-Terry rating and its price.
        agents: those on the front, best rated first: each other agent is no better and no cheaper than one of them.
        taken: by agent, what its answer to each query took, ``None`` where that is not known.
        units: the number of each query's conversation, or its own.
    """

    price: str
    points: Mapping[str, tuple[float, float]]
    agents: tuple[str, ...]
    taken: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    units: tuple[int, ...] = ()

    def shows_less(self, agents: Sequence[str], others: Sequence[str]) -> bool:
        """Whether each of some agents takes less than each of some others, beyond chance.

        On the queries that both answered, by the randomisation test of the mean difference, corrected for the number of
        pairs (Holm). Of latencies the logarithm is compared, so that one very slow answer does not decide.
        """
        if not all(agent in self.taken for agent in (*agents, *others)):
            return False
        import numpy as np

        from retrieval_eval.stats.bootstrap import sums_by_unit
        from retrieval_eval.stats.significance import holm, sign_flip

        def each(names: Sequence[str]) -> NDArray[np.float64]:
            own = np.array([self.taken[name] for name in names], np.float64)
            return np.log(np.maximum(own, _SHORTEST)) if self.price == LATENCY else own

        differences = np.nan_to_num(each(agents)[:, np.newaxis] - each(others)).reshape(-1, len(self.units))
        sums = sums_by_unit(differences, np.array(self.units, np.int64))
        return bool((sums.sum(axis=1) < 0).all() and (holm(sign_flip(sums)) <= _ALPHA).all())


class CostBoard(Board, frozen=True):
    """All agents that answered or were to answer; nothing is shown where nothing is known and no answer is missing.

    Attributes:
        agents: best rated first, those without a rating behind them by name.
        fronts: by price, see ``fronts``.
        notes: what they say, in words.
    """

    agents: tuple[AgentCosts, ...] = ()
    fronts: Mapping[str, Front] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether anything is known of what any answer took."""
        return any(each.known for each in self.agents)

    @property
    def gaps(self) -> tuple[AgentCosts, ...]:
        """Agents without an answer to some of the queries."""
        return tuple(own for own in self.agents if own.answered < own.queries)

    @property
    def complete(self) -> bool:
        """Whether every agent that we ask ourselves has answered everything."""
        return not any(own.missing for own in self.agents)

    def sections(self) -> Sequence[Section]:
        """One, or none."""
        if not self.known and not self.gaps:
            return []
        lead = "What an answer takes, and which agents nobody beats in both quality and price."
        charts = map(front_chart, self.fronts.values())
        remarks = [Remarks(self.notes)] if self.notes else []
        return [Section("costs", "Latency and cost", lead, [self.table(), *charts, *remarks])]

    def table(self) -> Table:
        """A row for each agent."""
        return Table("costs", "What an answer takes", _COLUMNS, [self._row(each) for each in self.agents])

    def columns(self, agent: str) -> dict[str, Any]:
        """An agent's figures as columns of a flat row, the same for every agent; none where there is no section."""
        if not self.sections():
            return {}
        own = [row for row in self.table().rows if row["agent"] == agent] or [{"agent": agent, "front": ""}]
        (record,) = records(Table("costs", "", _COLUMNS, own))
        return {name: value for name, value in record.items() if name != "agent"}

    def json(self) -> Any:
        """The field ``costs`` of a leaderboard's JSON."""
        agents = plain({own.agent: own for own in self.agents})
        for shape in agents.values():
            del shape["agent"]
        fronts = {price: list(front.agents) for price, front in self.fronts.items()}
        return {"agents": agents, "fronts": fronts, "notes": list(self.notes)}

    def _row(self, own: AgentCosts) -> Mapping[str, Any]:
        fronts = [price for price, front in self.fronts.items() if own.agent in front.agents]
        return {
            **{name: getattr(own, name) for name in ("agent", "answered", "queries", "retried")},
            "latency_median_s": own.latency_s.median,
            "latency_p95_s": own.latency_s.p95,
            "latency_known": own.latency_s.known,
            "tried_median_s": own.tried_s.median,
            "cost_usd": own.cost_usd.mean,
            "cost_known": own.cost_usd.known,
            "input_tokens": own.input_tokens.mean,
            "output_tokens": own.output_tokens.mean,
            "on_front": ["latency" if price == LATENCY else "cost" for price in fronts],
            "front": " ".join(fronts),
            "missing": [f"{cause} {count}" for cause, count in own.missing.items()],
        }


def cost_board(data: Dataset, rows: Sequence[AgentRating], failed: Mapping[str, Causes]) -> CostBoard:
    """Put together what answers took.

    ``rows`` are the ratings, best first; ``failed`` is as of ``agent_costs``.
    """
    rank = {row.agent: place for place, row in enumerate(rows)}
    costs = sorted(agent_costs(data, failed), key=lambda own: (rank.get(own.agent, len(rank)), own.agent))
    found = fronts(rows, costs, data)
    said = (*in_words(rows, found), *filter(None, map(_retry_words, costs)))
    return CostBoard(tuple(costs), found, said)


def _retry_words(own: AgentCosts) -> str:
    """What an agent's latency leaves out; empty where that is nothing."""
    if not own.retried or own.tried_s.median is None:
        return ""
    return (
        f"{own.agent}: {counted(own.retried, 'answer')} of {own.answered} came after failed attempts. Latency leaves "
        f"these out; with them the median is {SECONDS.write(own.tried_s.median)}, and by that it is compared."
    )


def pareto_front(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """The points that no other one dominates, best quality first, equal points by name.

    Args:
        points: (quality, price) by name. One dominates another if it is at least as good and costs at most as much,
            and is better in one of the two.
    """
    front: list[str] = []
    for name, point in sorted(points.items(), key=lambda entry: (-entry[1][0], entry[1][1], entry[0])):
        if not front or point[1] < points[front[-1]][1] or point == points[front[-1]]:
            front.append(name)
    return tuple(front)


def fronts(rows: Sequence[AgentRating], costs: Sequence[AgentCosts], data: Dataset) -> dict[str, Front]:
    """For latency and cost, the agents that no other agent beats on both rating and price.

    Agents without a rating or without that price are left out; where all prices are equal there is no front.
    ``costs`` are those of the answers in ``data``.
    """
    found = {}
    units = tuple(units_of(data.queries, {name: query.cluster for name, query in data.queries.items()}).tolist())
    for price in (LATENCY, COST):
        prices = {own.agent: value for own in costs if (value := _price(own, price)) is not None}
        points = {row.agent: (row.bt, prices[row.agent]) for row in rows if row.agent in prices}
        if len({price for _, price in points.values()}) > 1:
            taken = {
                agent: tuple(_taken(data.answers.get((query_id, agent)), price) for query_id in data.queries)
                for agent in points
            }
            found[price] = Front(price, points, pareto_front(points), taken, units)
    return found


def _taken(answer: Answer | None, price: str) -> float | None:
    """What one answer took of a price, failed attempts among it."""
    if answer is None:
        return None
    alone = _number(answer.metadata.get(price))
    tried = _number(answer.metadata.get(TRIED)) if price == LATENCY and alone is not None else None
    return alone if tried is None else tried


def in_words(rows: Sequence[AgentRating], found: Mapping[str, Front]) -> tuple[str, ...]:
    """What the fronts say, a sentence each; then of agents that cannot be told apart, which is cheaper or faster."""
    return (*(_front_words(front, len(rows)) for front in found.values()), *_tie_words(rows, found))


def _price(own: AgentCosts, price: str) -> float | None:
    """What an agent is compared by: nobody is fast whose answers come at the second attempt."""
    return own.tried_s.median if price == LATENCY else own.cost_usd.mean


def _shown(price: str, value: float) -> str:
    return SECONDS.write(value) if price == LATENCY else f"{MONEY.write(value)} a query"


def _front_words(front: Front, rated: int) -> str:
    word, superlative = ("latency", "fastest") if front.price == LATENCY else ("cost", "cheapest")
    if len(front.points) < rated:
        word += f", of {len(front.points)} of the {rated} agents, whose {word} is known"
    (first, *_), others = front.agents, [agent for agent in front.points if agent not in front.agents]
    if len(front.agents) == 1 and front.shows_less(front.agents, others):
        return f"Rating against {word}: none is rated higher than {first}, the {superlative}."
    rest = "answers no faster" if front.price == LATENCY else "costs no less"
    verb, one = ("is", first) if len(front.agents) == 1 else ("are", "one of them")
    ending = f"; every other agent is rated no higher and {rest} than {one}" if others else ""
    members = [f"{name} ({_shown(front.price, front.points[name][1])})" for name in front.agents]
    return f"Rating against {word}: by these figures, on the front {verb} {listed(members, _NAMED)}{ending}."


def lowest_prices(members: Sequence[str], found: Mapping[str, Front]) -> str:
    """Which of some agents of equal quality is the fastest and which the cheapest, or that this cannot be told.

    Empty where no two of them have a price that differs.
    """
    shown: dict[tuple[str, ...], list[str]] = {}
    open_ones = []
    for front in found.values():
        prices = {agent: front.points[agent][1] for agent in members if agent in front.points}
        if len(prices) < 2 or (lowest := min(prices.values())) == (highest := max(prices.values())):
            continue
        word = "the fastest" if front.price == LATENCY else "the cheapest"
        known = "" if len(prices) == len(members) else ", as far as that is known"
        those = tuple(agent for agent, price in prices.items() if price == lowest)
        if front.shows_less(those, [agent for agent in prices if agent not in those]):
            shown.setdefault(those, []).append(f"{word} ({_shown(front.price, lowest)}){known}")
        else:
            ends = " to ".join(_shown(front.price, price) for price in (lowest, highest))
            open_ones.append(f"{word} ({ends}) cannot be told")
    said = [
        f"{listed(those, _NAMED)} {'is' if len(those) == 1 else 'are'} {' and '.join(each)}"
        for those, each in shown.items()
    ]
    return " and ".join([*said, *open_ones])


def _tie_words(rows: Sequence[AgentRating], found: Mapping[str, Front]) -> Iterator[str]:
    for members in _groups(rows):
        if said := lowest_prices(members, found):
            yield f"{listed(members, _NAMED)} cannot be told apart by rating; of these {said}."


def _groups(rows: Sequence[AgentRating]) -> list[list[str]]:
    """The agents of each letter, see ``arena.ratings.ranks.groups``; agents alone under theirs are left out."""
    letters = sorted({end for row in rows for end in row.group.split("-")}, key=lambda letter: (len(letter), letter))
    groups = ([row.agent for row in rows if _in_group(row.group, letter)] for letter in letters)
    return [members for members in groups if len(members) > 1]


def _in_group(group: str, letter: str) -> bool:
    ends = group.split("-")
    first, last = (len(ends[0]), ends[0]), (len(ends[-1]), ends[-1])
    return first <= (len(letter), letter) <= last


def front_chart(front: Front, link: Callable[[str], str] | None = None) -> Chart:
    """Rating against what an answer takes; agents that nobody beats in both are filled and joined by steps.

    ``link`` gives the address of an agent.
    """
    from arena.present.picture import Chart, Dot

    fast = front.price == LATENCY
    title, form = ("Rating against latency", SECONDS) if fast else ("Rating against cost", MONEY)
    dots = [
        Dot(
            price,
            rating,
            agent,
            "blue" if agent in front.agents else "grey",
            f"{agent}: {rating:.0f}, {written}",
            link=link(agent) if link else "",
        )
        for agent in sorted(front.points, key=lambda agent: agent not in front.agents)
        for rating, price in [front.points[agent]]
        for written in [form.write(price)]
    ]
    return Chart(
        front.price,
        title,
        f"{title}: the agents {', '.join(front.agents)} are on the front",
        "The best are in the upper left corner; by these figures, nobody beats a filled dot in both.",
        "Median latency in seconds" if fast else "Mean cost of a query in US dollars",
        "Rating in points",
        dots,
        [(dot.x, dot.y) for dot in dots[: len(front.agents)]],
        stepped=True,
        zero=True,
    )
