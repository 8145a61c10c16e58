"""People vote: two answers to one query, without knowing whose they are.

Each person gets one game of each query, so that no earlier pair tells them what there is to say. Games come in random
order, whatever the judges made of them: estimates that correct a judge by people's labels take a random sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from arena.data.dataset import Dataset
from arena.opinions.people import texts_now
from arena.store.annotations import Annotation, Kind, texts_digest
from arena.voting.things import State, asker, drawn
from judges.types import Verdict

Game: TypeAlias = tuple[str, str, str]
"""A query and two agents, in the order of their names."""


@dataclass(frozen=True)
class Ballot:
    """Two answers to be compared.

    Attributes:
        agents: who gave the answer shown first and the other; not for the voter's eyes.
        answers: the texts, in the order in which they are shown.
        state: what became of it.
        said: the verdict, where there is one; A is the answer shown first.
    """

    query_id: str
    query: str
    agents: tuple[str, str]
    answers: tuple[str, str]
    state: State = State.OPEN
    said: Verdict | None = None

    @property
    def thing_id(self) -> str:
        """Twelve hexadecimal digits for what is read."""
        return texts_digest(self.query_id, *sorted(self.agents), *sorted(self.answers))[:12]


def ballots(games: Iterable[Game], data: Dataset, said: Iterable[Annotation], annotator: str) -> list[Ballot]:
    """What a person is to vote on, in their own order: of every query the game that they had, or the first drawn.

    Where an answer has changed since they voted, the query is asked anew.

    Args:
        games: those with a verdict of a judge.
        data: the texts.
        said: the latest word of this person.
        annotator: who they are.
    """
    heard = {own.query_id: own for own in said if own.kind is Kind.VERDICT and texts_now(own, data, {}) == own.texts}
    order = sorted(games, key=lambda game: drawn(asker(annotator, game[0]), *game))
    chosen: dict[str, tuple[str, str]] = {}
    for query_id, a, b in order:
        own = heard.get(query_id)
        agents = (own.item, own.other) if own is not None else _as_shown((query_id, a, b), annotator)
        chosen.setdefault(query_id, agents)
    return [_ballot(query_id, agents, data, heard.get(query_id)) for query_id, agents in chosen.items()]


def annotation_of(ballot: Ballot, verdict: Verdict | None, annotator: str, seconds: float | None = None) -> Annotation:
    """What a person said of two answers, ``None`` where they skip them."""
    texts = texts_digest(ballot.query, *ballot.answers)
    first, second = ballot.agents
    return Annotation(Kind.VERDICT, annotator, ballot.query_id, first, second, texts, verdict, seconds)


def _as_shown(game: Game, annotator: str) -> tuple[str, str]:
    """The two agents, the one first whose answer is shown first: either, with the same chance."""
    _, a, b = game
    return (a, b) if int(drawn(annotator, "side", *game), 16) % 2 else (b, a)


def _ballot(query_id: str, agents: tuple[str, str], data: Dataset, heard: Annotation | None) -> Ballot:
    first, second = (data.answers[query_id, agent].text for agent in agents)
    said = None if heard is None or heard.value is None else Verdict(heard.value)
    state = State.OPEN if heard is None else State.SKIPPED if said is None else State.DONE
    return Ballot(query_id, data.queries[query_id].text, agents, (first, second), state, said)
