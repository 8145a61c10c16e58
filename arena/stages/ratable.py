"""Checks before a run that the planned games allow the ratings that the configuration asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from arena.config.schema import Config
from arena.data.dataset import Dataset
from arena.ratings.games import Games
from arena.store import Wanted
from judges.errors import ConfigError
from judges.sections import nearest
from judges.types import repeat_name, repeat_of
from retrieval_eval.stats import Floats, Int32s

_SECTION = "ratings.bradley_terry"


def check_ratings(config: Config, data: Dataset, wanted: Iterable[Wanted]) -> None:
    """Check that the planned games allow the ratings that the configuration asks for.

    Raises:
        ConfigError: the anchor agent has no game, or these games cannot tell the effects of two covariates apart.
    """
    section = config.ratings.bradley_terry
    if section.anchor is None and not section.covariates:
        return
    known = {*data.agents, *config.agents}
    if section.anchor is not None and section.anchor not in known:
        hint = nearest(section.anchor, known)
        raise ConfigError(f"{config.at(_SECTION)}.anchor: no agent is named {section.anchor!r}{hint}")
    if any((query_id, agent) not in data.answers for query_id in data.queries for agent in config.agents):
        return  # the games depend on answers that are still missing
    planned = dict.fromkeys((want.query_id, repeat_of(want.item)[0], repeat_of(want.other)[0]) for want in wanted)
    if not planned:
        raise ConfigError(
            f"{config.at(_SECTION)}: 'anchor' and 'covariates' need games; remove them, or add a section 'pairwise'"
        )
    games, queries = _games(list(planned))
    if section.anchor is not None and section.anchor not in games.agents:
        raise ConfigError(
            f"{config.at(_SECTION)}.anchor: {section.anchor!r} has no game; choose one of {', '.join(games.agents)}"
        )
    if section.covariates:
        from arena.ratings.covariates import refuse_unusable

        try:
            refuse_unusable(games, answer_differences(section.covariates, games, queries, data))
        except ValueError as error:
            raise ConfigError(f"{config.at(_SECTION)}.covariates: {error}") from error


def _games(planned: Sequence[tuple[str, str, str]]) -> tuple[Games, Sequence[str]]:
    (queries, query), (agents, sides) = (
        np.unique(names, return_inverse=True)
        for names in ([game[0] for game in planned], [game[1:] for game in planned])
    )
    a, b = sides.reshape(-1, 2).T.astype(np.int32)
    games = Games(tuple(agents.tolist()), a, b, np.full(a.size, 0.5), query.astype(np.int32))
    return games, queries.tolist()


def answer_differences(names: Sequence[str], games: Games, queries: Sequence[str], data: Dataset) -> dict[str, Floats]:
    """For each covariate, the difference between the first and second answer of each game, in standard deviations."""
    from arena.ratings.covariates import QUALITIES, standardised_difference

    assert games.cluster is not None
    query: Int32s = games.cluster
    repeat = np.zeros(len(games), np.int64) if games.repeat is None else games.repeat - 1
    shape = int(repeat.max(initial=0)) + 1, len(queries), len(games.agents)
    texts = [
        data.answers.get((query_id, repeat_name(agent, number + 1)))
        for number in range(shape[0])
        for query_id in queries
        for agent in games.agents
    ]
    differences = {}
    for name in names:
        measure = QUALITIES[name]
        of_answers = np.array([np.nan if answer is None else measure(answer.text) for answer in texts]).reshape(shape)
        first, second = (of_answers[repeat, query, side] for side in (games.a, games.b))
        differences[name] = standardised_difference(first, second)
    return differences
