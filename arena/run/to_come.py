"""Placeholder queries and answers of maximum size, for plans of a run before the real ones exist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from arena.config.schema import Config
from arena.data.dataset import Dataset
from judges.types import Answer, Document, Query, Retrieved
from judges.writing import CHARACTERS_PER_TOKEN
from retrieval_eval.agents.spec import EXTRACTIVE, AgentSpec
from retrieval_eval.scores.citations import CITATIONS

if TYPE_CHECKING:
    from arena.run.agents import OpenedAgents

ANSWER: Final = 4_000
"""Assumed length in characters of an answer without a limit."""
DOCUMENTS: Final = 10
"""Assumed number of documents of an agent that declares no depth."""
_QUERY: Final = "a query of as many words as people need to ask for what they want to know, and some more"
_SENTENCE: Final = 200


def queries_to_come(number: int) -> dict[str, Query]:
    """``number`` different placeholder queries, by id."""
    return {f"to come {at}": Query(f"to come {at}", f"{at}: {_QUERY}") for at in range(number)}


def with_all_answers(config: Config, data: Dataset, opened: OpenedAgents | None) -> Dataset:
    """Add placeholders for all missing answers: each has maximum length and separate retrieved documents."""
    corpus = () if opened is None or opened.corpus is None else opened.corpus.documents
    longest = sorted((document.text for document in corpus), key=len, reverse=True)[: _most_documents(config)]
    answers, documents = dict(data.answers), dict(data.documents)
    retrieved = {query_id: list(entries) for query_id, entries in data.retrieved.items()}
    for query_id in data.queries:
        for agent, spec in config.agents.items():
            if (query_id, agent) in answers:
                continue
            stand_ins = list(_documents(f"{query_id}/{agent}", longest, _documents_of(config, spec)))
            documents |= {document.doc_id: document for document in stand_ins}
            retrieved.setdefault(query_id, []).extend(
                Retrieved(query_id, document.doc_id, agent, rank) for rank, document in enumerate(stand_ins, start=1)
            )
            answers[query_id, agent] = _answer(config, spec, query_id, agent, stand_ins)
    ordered = {
        query_id: tuple(sorted(entries, key=lambda entry: (entry.agent, entry.rank)))
        for query_id, entries in retrieved.items()
    }
    return replace(data, answers=answers, documents=documents, retrieved=ordered)


def _most_documents(config: Config) -> int:
    return max((_documents_of(config, spec) for spec in config.agents.values()), default=0)


def _documents_of(config: Config, spec: AgentSpec) -> int:
    if spec.kind in {"rag", "fusion"}:
        return spec.depth
    return (config.retrieval.depth if config.retrieval is not None else None) or DOCUMENTS


def _documents(name: str, longest: Sequence[str], number: int) -> Iterator[Document]:
    for at in range(number):
        text = longest[min(at, len(longest) - 1)] if longest else "x" * ANSWER
        yield Document(f"{name}/{at}", f"{name} {at}: {text}")  # all differ, so that each needs a judgment


def _answer(config: Config, spec: AgentSpec, query_id: str, agent: str, documents: Sequence[Document]) -> Answer:
    generator = config.judges.get(spec.generator or "")
    length = ANSWER
    if generator is not None:
        length = generator.max_tokens * CHARACTERS_PER_TOKEN
    elif spec.kind in {"rag", "fusion"} and spec.generator in {None, EXTRACTIVE}:
        length = max((len(document.text) for document in documents), default=ANSWER)
    shown = [document.doc_id for document in documents[: spec.passages]] or [""]
    sentence = f"{'word ' * (_SENTENCE // 5)}[{{}}]. "
    count = max(1, length // _SENTENCE)
    text = "".join(sentence.format(at % len(shown) + 1) for at in range(count))
    cited: Mapping[str, str] = {CITATIONS: json.dumps(shown)} if documents else {}
    return Answer(query_id, agent, f"{agent} on {query_id}: {text}", cited)
