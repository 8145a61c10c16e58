"""Costs of answers: seconds, tokens and dollars of each agent, and how many queries it answered.

A leaderboard shows them for each agent, with the Pareto fronts of quality against price, and names the cheapest and
fastest among agents of equal quality.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from arena.data.dataset import COST, LATENCY, TOKENS_IN, TOKENS_OUT, TRIED, Causes, Dataset
from arena.present.blocks import Board, Remarks, Section
from arena.present.numbers import COUNT, MONEY, POINTS, SECONDS, counted, listed
from arena.present.table import Column, Table, plain, records
from arena.ratings.results import AgentRating
from judges.types import Answer, repeat_of
from retrieval_eval.stats.bootstrap import units_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from arena.present.picture import Chart

_ALPHA: Final = 0.05
_SHORTEST: Final = 0.001
"""Latencies of fewer seconds count as this long."""
_NAMED: Final = 5
_LATENCY: Final = (
    "Median, from sending the request to the end of the answer; waiting for a turn and failed attempts are not in it."
)
_COLUMNS: Final = (
    Column("agent", "Agent"),
    Column("answered", "Answered", COUNT, "Games are played where both agents answered."),
    Column("queries", "Wanted", COUNT, "An answer to each query, and to each of its repeats."),
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
    mean: float | None = None
    known: int = 0


class Median(Struct, frozen=True):
    median: float | None = None
    known: int = 0


class Latency(Median, frozen=True):
    p95: float | None = None


class AgentCosts(Struct, frozen=True):
    """Costs of one agent's answers. Answers whose cost is unknown are left out of a mean, and do not count as 0.

    Attributes:
        missing: number of queries without an answer, by cause, for an agent that the tournament asks itself.
        latency_s: seconds that a user waits for an answer: from sending the request to the end of the answer.
        retried: number of answers that came after failed attempts.
        tried_s: seconds of all attempts at an answer, without the waits between them; the latency if attempts were not
            recorded.
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
        return any(figure.known for figure in (self.latency_s, self.cost_usd, self.input_tokens, self.output_tokens))


def agent_costs(data: Dataset, failed: Mapping[str, Causes]) -> tuple[AgentCosts, ...]:
    """The costs of each agent's answers, sorted by agent.

    Costs are read from the metadata of answers: a table of answers may have the columns ``latency_s``, ``tried_s``,
    ``cost_usd``, ``input_tokens`` and ``output_tokens``; answers of agents that the tournament asks have them too.
    ``failed`` has, for each agent that the tournament asks, the number of its missing answers by cause.
    """
    by_agent: dict[str, Counter[str]] = {}
    for name, causes in failed.items():
        by_agent.setdefault(repeat_of(name)[0], Counter()).update(causes)
    answers: dict[str, list[Answer]] = {agent: [] for agent in sorted({*data.agents, *by_agent})}
    for (_, agent), answer in data.answers.items():
        answers[repeat_of(agent)[0]].append(answer)
    repeats = Counter(repeat_of(name)[0] for name in {*data.answerers, *failed})
    return tuple(
        _costs(agent, agent_answers, len(data.queries) * repeats[agent], by_agent.get(agent, {}))
        for agent, agent_answers in answers.items()
        if agent_answers or agent in by_agent
    )


def _costs(agent: str, answers: Iterable[Answer], queries: int, missing: Causes) -> AgentCosts:
    import numpy as np

    answer_list = list(answers)
    latencies = _values(answer_list, LATENCY)
    median, p95 = np.percentile(latencies, (50, 95)).tolist() if latencies else (None, None)
    time_pairs = [
        (_number(answer.metadata.get(LATENCY)), _number(answer.metadata.get(TRIED))) for answer in answer_list
    ]
    attempt_times = [seconds for answer in answer_list if (seconds := _answer_price(answer, LATENCY)) is not None]
    return AgentCosts(
        agent,
        queries,
        len(answer_list),
        Latency(median, len(latencies), p95),
        _mean(answer_list, COST),
        _mean(answer_list, TOKENS_IN),
        _mean(answer_list, TOKENS_OUT),
        dict(missing),
        sum(latency is not None and all_s is not None and all_s > latency for latency, all_s in time_pairs),
        Median(float(np.median(attempt_times)) if attempt_times else None, len(attempt_times)),
    )


def _mean(answers: Iterable[Answer], name: str) -> CostMean:
    values = _values(answers, name)
    return CostMean(math.fsum(values) / len(values) if values else None, len(values))


def _values(answers: Iterable[Answer], name: str) -> list[float]:
    return [value for answer in answers if (value := _number(answer.metadata.get(name))) is not None]


_MOST: Final = 1e15
"""Largest number accepted as seconds, dollars or tokens; a larger one counts as unknown."""


def _number(text: str | None) -> float | None:
    """Parse a number of seconds, dollars or tokens; ``None`` if the text, from a user's table, is something else."""
    try:
        value = math.nan if text is None else float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _MOST else None


class Front(Struct, frozen=True):
    """The Pareto front of rating and one price, latency or cost: the agents that no other agent beats in both.

    Attributes:
        price: ``latency_s`` (median, failed attempts included) or ``cost_usd`` (mean of an answer).
        points: Bradley-Terry rating and price of every agent that has both.
        agents: agents on the front, best rated first; every agent off the front is no better and no cheaper than one on
            it.
        taken: price of the answer to each query, by agent; ``None`` for an unknown price.
        units: number of each query's conversation; a query outside conversations has a number of its own.
    """

    price: str
    points: Mapping[str, tuple[float, float]]
    agents: tuple[str, ...]
    taken: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    units: tuple[int, ...] = ()

    def shows_less(self, agents: Sequence[str], others: Sequence[str]) -> bool:
        """Whether each of ``agents`` has a significantly lower price than each of ``others``.

        The randomisation test of the mean difference compares two agents on the queries that both answered, corrected
        for the number of pairs (Holm). Latencies are compared by their logarithm, so that one very slow answer does not
        decide.
        """
        if not all(agent in self.taken for agent in (*agents, *others)):
            return False
        import numpy as np

        from retrieval_eval.stats.bootstrap import sums_by_unit
        from retrieval_eval.stats.paired import holm, sign_flip

        def prices(names: Sequence[str]) -> NDArray[np.float64]:
            values = np.array([self.taken[name] for name in names], np.float64)
            return np.log(np.maximum(values, _SHORTEST)) if self.price == LATENCY else values

        differences = np.nan_to_num(prices(agents)[:, np.newaxis] - prices(others)).reshape(-1, len(self.units))
        sums = sums_by_unit(differences, np.array(self.units, np.int64))
        return bool((sums.sum(axis=1) < 0).all() and (holm(sign_flip(sums)) <= _ALPHA).all())


class CostBoard(Board, frozen=True):
    """Costs of all agents; shows nothing if no cost is known and no answer is missing.

    Attributes:
        agents: best rated first; agents without a rating follow, sorted by name.
        fronts: the Pareto front for each price, see ``fronts``.
    """

    agents: tuple[AgentCosts, ...] = ()
    fronts: Mapping[str, Front] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return any(costs.known for costs in self.agents)

    @property
    def gaps(self) -> tuple[AgentCosts, ...]:
        return tuple(costs for costs in self.agents if costs.answered < costs.queries)

    @property
    def complete(self) -> bool:
        return not any(costs.missing for costs in self.agents)

    def sections(self) -> Sequence[Section]:
        if not self.known and not self.gaps:
            return []
        lead = "What an answer takes, and which agents nobody beats in both quality and price."
        charts = map(front_chart, self.fronts.values())
        remarks = [Remarks(self.notes)] if self.notes else []
        return [Section("costs", "Latency and cost", lead, [self.table(), *charts, *remarks])]

    def table(self) -> Table:
        return Table("costs", "What an answer takes", _COLUMNS, [self._row(costs) for costs in self.agents])

    def columns(self, agent: str) -> dict[str, Any]:
        """An agent's costs by column name, with the same columns for every agent; empty if the board shows nothing."""
        if not self.sections():
            return {}
        rows = [row for row in self.table().rows if row["agent"] == agent] or [{"agent": agent, "front": ""}]
        (record,) = records(Table("costs", "", _COLUMNS, rows))
        return {name: value for name, value in record.items() if name != "agent"}

    def json(self) -> Any:
        agents = plain({costs.agent: costs for costs in self.agents})
        for figures in agents.values():
            del figures["agent"]
        fronts = {price: list(front.agents) for price, front in self.fronts.items()}
        return {"agents": agents, "fronts": fronts, "notes": list(self.notes)}

    def _row(self, costs: AgentCosts) -> Mapping[str, Any]:
        fronts = [price for price, front in self.fronts.items() if costs.agent in front.agents]
        return {
            **{name: getattr(costs, name) for name in ("agent", "answered", "queries", "retried")},
            "latency_median_s": costs.latency_s.median,
            "latency_p95_s": costs.latency_s.p95,
            "latency_known": costs.latency_s.known,
            "tried_median_s": costs.tried_s.median,
            "cost_usd": costs.cost_usd.mean,
            "cost_known": costs.cost_usd.known,
            "input_tokens": costs.input_tokens.mean,
            "output_tokens": costs.output_tokens.mean,
            "on_front": ["latency" if price == LATENCY else "cost" for price in fronts],
            "front": " ".join(fronts),
            "missing": [f"{cause} {count}" for cause, count in costs.missing.items()],
        }


def cost_board(data: Dataset, rows: Sequence[AgentRating], failed: Mapping[str, Causes]) -> CostBoard:
    """Compute the costs of all agents. ``rows`` is the leaderboard, best first; for ``failed``, see ``agent_costs``."""
    places = {row.agent: place for place, row in enumerate(rows)}
    costs = sorted(agent_costs(data, failed), key=lambda costs: (places.get(costs.agent, len(places)), costs.agent))
    price_fronts = fronts(rows, costs, data)
    notes = (*in_words(rows, price_fronts), *filter(None, map(_retry_words, costs)))
    return CostBoard(tuple(costs), price_fronts, notes)


def _retry_words(costs: AgentCosts) -> str:
    if not costs.retried or costs.tried_s.median is None:
        return ""
    return (
        f"{costs.agent}: {counted(costs.retried, 'answer')} of {costs.answered} came after failed attempts. Latency "
        f"leaves these out; with them the median is {SECONDS.write(costs.tried_s.median)}, and by that it is compared."
    )


def pareto_front(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Names of the points that no other point dominates, best quality first, equal points sorted by name.

    Args:
        points: (quality, price) by name. One point dominates another if its quality is at least as high and its price
            at most as high, and one of the two is better.
    """
    front: list[str] = []
    for name, point in sorted(points.items(), key=lambda entry: (-entry[1][0], entry[1][1], entry[0])):
        if not front or point[1] < points[front[-1]][1] or point == points[front[-1]]:
            front.append(name)
    return tuple(front)


def fronts(rows: Sequence[AgentRating], costs: Sequence[AgentCosts], data: Dataset) -> dict[str, Front]:
    """The Pareto fronts of rating and latency, and of rating and cost, by name of the price.

    Agents without a rating or with an unknown price are left out. There is no front for a price that all agents share.
    ``costs`` must be computed from the answers in ``data``.
    """
    by_price = {}
    units = tuple(units_of(data.queries, {name: query.cluster for name, query in data.queries.items()}).tolist())
    for price in (LATENCY, COST):
        prices = {
            agent_cost.agent: value for agent_cost in costs if (value := _agent_price(agent_cost, price)) is not None
        }
        points = {row.agent: (row.bt, prices[row.agent]) for row in rows if row.agent in prices}
        if len({price for _, price in points.values()}) > 1:
            taken = {
                agent: tuple(_answer_price(data.answers.get((query_id, agent)), price) for query_id in data.queries)
                for agent in points
            }
            by_price[price] = Front(price, points, pareto_front(points), taken, units)
    return by_price


def _answer_price(answer: Answer | None, price: str) -> float | None:
    """The price of one answer; ``None`` if unknown. A latency includes failed attempts."""
    if answer is None:
        return None
    value = _number(answer.metadata.get(price))
    tried = _number(answer.metadata.get(TRIED)) if price == LATENCY and value is not None else None
    return value if tried is None else tried


def in_words(rows: Sequence[AgentRating], price_fronts: Mapping[str, Front]) -> tuple[str, ...]:
    """Sentences on the Pareto fronts, then on the cheapest and fastest of the agents that ratings cannot separate."""
    return (*(_front_words(front, len(rows)) for front in price_fronts.values()), *_tie_words(rows, price_fronts))


def _agent_price(costs: AgentCosts, price: str) -> float | None:
    return costs.tried_s.median if price == LATENCY else costs.cost_usd.mean


def _shown(price: str, value: float) -> str:
    return SECONDS.write(value) if price == LATENCY else f"{MONEY.write(value)} a query"


def _front_words(front: Front, rated: int) -> str:
    word, superlative = ("latency", "fastest") if front.price == LATENCY else ("cost", "cheapest")
    if len(front.points) < rated:
        word += f", of {len(front.points)} of the {rated} agents, whose {word} is known"
    (first, *_), others = front.agents, [agent for agent in front.points if agent not in front.agents]
    if len(front.agents) == 1 and front.shows_less(front.agents, others):
        return f"Rating against {word}: none is rated higher than {first}, the {superlative}."
    price_phrase = "answers no faster" if front.price == LATENCY else "costs no less"
    verb, subject = ("is", first) if len(front.agents) == 1 else ("are", "one of them")
    ending = f"; every other agent is rated no higher and {price_phrase} than {subject}" if others else ""
    members = [f"{name} ({_shown(front.price, front.points[name][1])})" for name in front.agents]
    return f"Rating against {word}: by these figures, on the front {verb} {listed(members, _NAMED)}{ending}."


def lowest_prices(members: Sequence[str], price_fronts: Mapping[str, Front]) -> str:
    """Name the fastest and the cheapest of equally rated agents, or say that the data cannot separate them.

    The phrase is empty if the known prices of these agents do not differ.
    """
    proven: dict[tuple[str, ...], list[str]] = {}
    undecided = []
    for front in price_fronts.values():
        prices = {agent: front.points[agent][1] for agent in members if agent in front.points}
        if len(prices) < 2 or (lowest := min(prices.values())) == (highest := max(prices.values())):
            continue
        word = "the fastest" if front.price == LATENCY else "the cheapest"
        caveat = "" if len(prices) == len(members) else ", as far as that is known"
        leaders = tuple(agent for agent, price in prices.items() if price == lowest)
        if front.shows_less(leaders, [agent for agent in prices if agent not in leaders]):
            proven.setdefault(leaders, []).append(f"{word} ({_shown(front.price, lowest)}){caveat}")
        else:
            ends = " to ".join(_shown(front.price, price) for price in (lowest, highest))
            undecided.append(f"{word} ({ends}) cannot be told")
    sentences = [
        f"{listed(leaders, _NAMED)} {'is' if len(leaders) == 1 else 'are'} {' and '.join(superlatives)}"
        for leaders, superlatives in proven.items()
    ]
    return " and ".join([*sentences, *undecided])


def _tie_words(rows: Sequence[AgentRating], price_fronts: Mapping[str, Front]) -> Iterator[str]:
    for members in _groups(rows):
        if phrase := lowest_prices(members, price_fronts):
            yield f"{listed(members, _NAMED)} cannot be told apart by rating; of these {phrase}."


def _groups(rows: Sequence[AgentRating]) -> list[list[str]]:
    """The agents of each group on the leaderboard (see ``arena.ratings.ranks.groups``) that has more than one agent."""
    letters = sorted({end for row in rows for end in row.group.split("-")}, key=lambda letter: (len(letter), letter))
    groups = ([row.agent for row in rows if _in_group(row.group, letter)] for letter in letters)
    return [members for members in groups if len(members) > 1]


def _in_group(group: str, letter: str) -> bool:
    ends = group.split("-")
    first, last = (len(ends[0]), ends[0]), (len(ends[-1]), ends[-1])
    return first <= (len(letter), letter) <= last


def front_chart(front: Front, link: Callable[[str], str] | None = None) -> Chart:
    """Chart of rating against latency or cost; agents on the front are filled dots joined by steps.

    ``link`` returns the address of an agent's page.
    """
    from arena.present.picture import Chart, Dot

    by_latency = front.price == LATENCY
    title, form = ("Rating against latency", SECONDS) if by_latency else ("Rating against cost", MONEY)
    dots = [
        Dot(
            price,
            rating,
            agent,
            "blue" if agent in front.agents else "grey",
            f"{agent}: {rating:.0f}, {price_text}",
            link=link(agent) if link else "",
        )
        for agent in sorted(front.points, key=lambda agent: agent not in front.agents)
        for rating, price in [front.points[agent]]
        for price_text in [form.write(price)]
    ]
    return Chart(
        front.price,
        title,
        f"{title}: the agents {', '.join(front.agents)} are on the front",
        "The best are in the upper left corner; by these figures, nobody beats a filled dot in both.",
        "Median latency in seconds" if by_latency else "Mean cost of a query in US dollars",
        "Rating in points",
        dots,
        [(dot.x, dot.y) for dot in dots[: len(front.agents)]],
        stepped=True,
        zero=True,
    )
