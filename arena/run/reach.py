"""Checks that addresses in a configuration answer: one GET each, which costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from msgspec import Struct

from judges.errors import TO_DO, InputError, ProviderError
from judges.judge import Judge
from judges.providers.endpoint import Endpoint
from judges.providers.hosted import HostedProvider
from judges.spec import JudgeSpec
from retrieval_eval.agents.spec import AgentSpec
from retrieval_eval.data.recordings import read_recordings

_NO_ACCESS: Final = frozenset({401, 403})
_NAMED: Final = 5
Reached: TypeAlias = tuple[str, bool, str]
"""Name of the judge or agent, whether its address can be used, and a sentence on the response."""


class _Place(Struct, frozen=True):
    """An address to check.

    Attributes:
        name: name of the judge or agent, for messages.
        endpoint: the HTTP connection to use.
        path: path of the list of models, relative to the address; empty to request the address itself.
        key: where the key comes from, for messages.
        address: where the address comes from, for messages.
        model: name of the model that the list should contain.
    """

    name: str
    endpoint: Endpoint
    key: str
    address: str
    path: str = ""
    model: str = ""


def reached(judges: Mapping[str, JudgeSpec], agents: Mapping[str, AgentSpec]) -> list[Reached]:
    """Check the addresses of judges, agents and embeddings."""
    return asyncio.run(_looked_at(list(_places(judges, agents))))


async def _looked_at(places: list[_Place]) -> list[Reached]:
    return list(await asyncio.gather(*map(_look, places)))


async def _look(place: _Place) -> Reached:
    try:
        received = await place.endpoint.look(place.path)
    except ProviderError as error:
        to_do = TO_DO.get(error.cause, "").format(address=place.address, key=place.key, code="")
        return place.name, False, "; ".join(filter(None, (str(error), to_do)))
    finally:
        await place.endpoint.close()
    where, status = place.endpoint.name, received.status
    if status in _NO_ACCESS:
        return place.name, False, f"{where}: HTTP {status}; check the key in {place.key}"
    if status >= 500 or 300 <= status < 400:
        return place.name, False, f"{where}: HTTP {status}; check the server and {place.address}"
    return place.name, True, f"{where} was reached (HTTP {status}){_of_models(received.content, place.model)}"


def _of_models(content: bytes, model: str) -> str:
    """A phrase on whether the server lists the model; empty if it lists no models."""
    listed: list[str] = []
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        listed = [str(each["id"]) for each in json.loads(content)["data"]]
    if not model or not listed:
        return ""
    if model in listed:
        return f" and lists {model!r}"
    more = ", ..." if len(listed) > _NAMED else ""
    return f"; {model!r} is not among the models that it lists: {', '.join(listed[:_NAMED])}{more}"


def _places(judges: Mapping[str, JudgeSpec], agents: Mapping[str, AgentSpec]) -> Iterator[_Place]:
    """The addresses of judges and agents that can be opened; other checks report the others."""
    for name, spec in judges.items():
        with suppress(InputError):
            provider = Judge(name, spec, read_records=read_recordings).provider
            if isinstance(provider, HostedProvider):
                where = provider.endpoint, spec.key_from, spec.address_from
                yield _Place(f"judge {name}", *where, "/models", spec.model)
    for name, agent in agents.items():
        yield from _of_agent(name, agent)


def _of_agent(name: str, spec: AgentSpec) -> Iterator[_Place]:
    from retrieval_eval.agents.embeddings import HostedEmbedder
    from retrieval_eval.agents.remote import RemoteAgent

    with suppress(InputError):
        if spec.kind in {"endpoint", "http"}:
            agent = RemoteAgent(name, spec, {}, "")
            key = spec.api_key_env or "'headers_env'"
            yield _Place(f"agent {name}", agent.endpoint, key, "'url'" if spec.url else "'base_url'")
        elif spec.kind in {"rag", "fusion"} and spec.retriever != "bm25" and spec.embeddings.provider == "openai":
            settings = spec.embeddings
            yield _Place(
                f"agent {name} embeddings",
                HostedEmbedder(settings).endpoint,
                settings.api_key_env or "OPENAI_API_KEY",
                "'base_url'",
                "/models",
                settings.model,
            )
