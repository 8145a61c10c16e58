"""Declarations of agents and of embeddings in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from judges.functions import Named
from judges.masking import key_in
from judges.sections import Count, Positive, PromptName, RelativePath, Section
from judges.spec import SECRET, Address, HeadersEnv, Price, Variable, names_in


class EmbeddingsSpec(Section):
    """Declares an embedder, which turns texts into vectors."""

    provider: Literal["auto", "openai", "transformers", "minilm", "hashed"] = "auto"
    """``openai`` (any server with OpenAI's embeddings), ``transformers``, ``minilm`` (the extra ``dense``), ``hashed``
    (words without their meaning), or ``auto``: ``minilm`` if installed, else ``hashed``."""
    model: str = ""
    """``openai``, ``transformers``: the model's name."""
    path: RelativePath | None = None
    """``transformers``: a model folder."""
    base_url: Address | None = None
    """``openai``: the server's address; OpenAI's when left out."""
    api_key_env: Variable | None = None
    """``openai``: the environment variable that holds the key."""
    headers_env: HeadersEnv = Field(default_factory=dict)
    """``openai``: headers, and the environment variables that hold their values, as for judges."""
    dimensions: Count | None = None
    """``openai``: length of the vectors, where the model can shorten them."""
    query_prefix: str = ""
    """Put before each query."""
    document_prefix: str = ""
    """Put before each document."""
    batch: Count = 64
    """Texts in one request or batch."""
    concurrency: Count = 4
    """``openai``: requests at once."""
    timeout_s: Positive = 60.0
    """``openai``: seconds one attempt may take."""
    max_attempts: Count = 6
    """``openai``: attempts of one request."""
    usd_per_million_tokens: Annotated[float, Field(ge=0)] | None = None
    """``openai``: the price."""
    device: str | None = None
    """``transformers``, ``minilm``: ``cpu`` or ``cuda``; chosen automatically when left out."""

    @model_validator(mode="after")
    def _complete(self) -> EmbeddingsSpec:
        if self.provider == "openai" and not self.model:
            raise ValueError("provider 'openai' needs a 'model'")
        if self.provider == "transformers" and not (self.model or self.path):
            raise ValueError("provider 'transformers' needs a 'model' name or a 'path' to a local folder")
        refuse_foreign(self, f"provider {self.provider!r}", _OF_EMBEDDINGS, _OF_EMBEDDINGS[self.provider])
        return self


_OF_EMBEDDINGS: Mapping[str, frozenset[str]] = {
    "openai": frozenset(
        {"model", "base_url", "api_key_env", "dimensions", "timeout_s", "max_attempts", "usd_per_million_tokens"}
        | {"concurrency", "headers_env"}
    ),
    "transformers": frozenset({"model", "path", "device"}),
    "minilm": frozenset({"device"}),
    "hashed": frozenset(),
    "auto": frozenset(),
}
"""For each provider of embeddings, the keys that it uses and some others do not."""


def refuse_foreign(section: Section, what: str, table: Mapping[str, frozenset[str]], keys: frozenset[str]) -> None:
    """Raise ``ValueError`` for a key that this provider or kind does not use: ignoring it could hide a mistake."""
    foreign = frozenset().union(*table.values()) - keys
    for name in sorted(foreign & section.model_fields_set):
        users = ", ".join(repr(other) for other, used in table.items() if name in used)
        raise ValueError(f"{what} has no use for {name!r}, which goes with {users}")


AgentKind: TypeAlias = Literal["rag", "fusion", "baseline", "endpoint", "http", "python", "file"]
EXTRACTIVE = "extractive"
"""Name of the generator that uses no model: it picks sentences from the passages."""


class MappingSpec(Section):
    """JMESPath expressions that find the answer, documents, citations and costs in a reply's JSON."""

    answer: str
    """The answer."""
    documents: str | None = None
    """A list of documents, best first."""
    doc_id: str = "id"
    """A document's id; without one, the hash of its text."""
    text: str = "text"
    """A document's text."""
    score: str = "score"
    """A document's score."""
    title: str = "title"
    """A document's title."""
    citations: str | None = None
    """Ids, or numbers from 1; when left out, the ``[1]`` in the answer."""
    input_tokens: str | None = None
    """Tokens sent to a model."""
    output_tokens: str | None = None
    """Tokens written by a model."""
    cost_usd: str | None = None
    """Dollars."""

    @model_validator(mode="after")
    def _expressions(self) -> MappingSpec:
        from jmespath import compile as compiled
        from jmespath.exceptions import JMESPathError

        for name in type(self).model_fields:
            expression = getattr(self, name)
            try:
                if expression is not None:
                    compiled(expression)
            except JMESPathError as error:
                problem = str(error).splitlines()[0].rstrip(":")
                raise ValueError(f"{name}: {expression!r} is no JMESPath expression: {problem}") from error
        return self


class AgentSettings(Section):
    """The settings of an agent that are stored with its results."""

    kind: AgentKind
    """``rag``, ``fusion``, ``baseline``, ``endpoint``, ``http``, ``python`` or ``file``: see [agents](agents.md)."""
    version: str = ""
    """Change it when the system behind the address changes, so that it is asked again. ``python``: also when a part of
    the function changes that [cannot be read](judges.md#functions)."""
    generator: str | None = None
    """The judge that writes answers. ``rag``, ``fusion``: by default ``extractive``, which picks sentences."""
    retriever: Literal["bm25", "dense", "hybrid"] = "bm25"
    """``bm25``, ``dense``, or ``hybrid``, which merges both by reciprocal rank."""
    depth: Count = 10
    """Documents to retrieve and record."""
    passages: Count = 5
    """How many of the retrieved documents the generator sees."""
    rrf_k: Count = 60
    """The constant of reciprocal rank fusion."""
    queries: Count = 4
    """``fusion``: number of further queries."""
    ask: Literal["article", "page", "answer"] | None = None
    """``baseline``: what the model writes: an ``article``, a ``page`` or an ``answer``."""
    model: str = ""
    """``endpoint``: the model's name."""

    def stored(self) -> dict[str, Any]:
        """These fields as JSON, without default values."""
        return self.model_dump(mode="json", include=set(AgentSettings.model_fields), exclude_defaults=True)


class AgentSpec(AgentSettings):
    """One entry under ``agents:``, a system to compare."""

    prompt: PromptName | None = None
    """``rag``, ``fusion``, ``baseline``: a packaged prompt, or the path of your own."""
    embeddings: EmbeddingsSpec = EmbeddingsSpec()
    """``dense``, ``hybrid``: what turns texts into vectors."""
    queries_prompt: PromptName = "fusion_queries"
    """``fusion``: the prompt that asks for further queries."""
    base_url: Address | None = None
    """``endpoint``: the address before ``/chat/completions``."""
    api_key_env: Variable | None = None
    """``endpoint``: the environment variable that holds the key."""
    url: Address | None = None
    """``http``: the address to post to."""
    headers_env: HeadersEnv = Field(default_factory=dict)
    """Headers, and the environment variables that hold their values."""
    request: dict[str, Any] | None = None
    """``http``: the JSON to send, with ``{query}``, ``{query_id}``, ``{messages}``. ``endpoint``: further fields."""
    mapping: MappingSpec | None = None
    """Where the reply holds each thing, as JMESPath expressions over its JSON."""
    price: Price | None = None
    """Dollars per million tokens, where a reply names no ``cost_usd``."""
    timeout_s: Positive = 120.0
    """Seconds one attempt may take."""
    max_attempts: Count = 3
    """Attempts of one request."""
    concurrency: Count = 4
    """Requests at once."""
    function: Named | None = None
    """``python``: ``module:function`` or ``file.py:function``, called with a query."""
    answers: RelativePath | None = None
    """``file``: a table ``qid, answer``, with ``agent`` if it holds several."""
    documents: RelativePath | None = None
    """``file``: a table ``qid, did, document``, with ``agent``, ``rank`` and ``score`` if it has them."""
    run: RelativePath | None = None
    """``file``: a TREC run over the corpus, instead of ``documents``."""
    agent: str | None = None
    """``file``: the agent's name in the tables; its own name when left out."""

    @property
    def told_id(self) -> bool:
        """Whether the agent receives the query's id, so that queries with the same text need separate replies."""
        return self.kind in {"python", "file"} or any("{query_id}" in text for text in _texts(self.request))

    @property
    def sends_no_messages(self) -> bool:
        """Whether the agent's request has no place for the conversation before a query."""
        has_own_request = self.kind == "http" or (self.kind == "endpoint" and "messages" in (self.request or {}))
        return has_own_request and not any("{messages}" in text for text in _texts(self.request))

    @model_validator(mode="after")
    def _fits_kind(self) -> AgentSpec:
        keys = _OF_KIND[self.kind]
        refuse_foreign(self, f"kind {self.kind!r}", _OF_KIND, keys)
        for name in _REQUIRED[self.kind]:
            if getattr(self, name) in (None, ""):
                raise ValueError(f"kind {self.kind!r} needs {name!r}")
        if "embeddings" in self.model_fields_set and self.retriever == "bm25":
            raise ValueError("'embeddings' goes with retriever 'dense' or 'hybrid'")
        if "rrf_k" in self.model_fields_set and self.kind == "rag" and self.retriever != "hybrid":
            raise ValueError("'rrf_k' goes with kind 'fusion' or retriever 'hybrid'")
        if self.generator in (None, EXTRACTIVE) and {"prompt", "queries_prompt"} & self.model_fields_set:
            raise ValueError("prompts go with a judge as 'generator'; the extractive one reads none")
        if self.passages > self.depth:
            raise ValueError(f"'passages' ({self.passages}) cannot be more than 'depth' ({self.depth})")
        if self.kind == "baseline" and self.generator == EXTRACTIVE:
            raise ValueError("a baseline has no documents to extract from; name a judge as 'generator'")
        if self.documents is not None and self.run is not None:
            raise ValueError("'run' takes the place of 'documents'; leave one of them out")
        self._check_request()
        return self

    def _check_request(self) -> None:
        if self.request is None:
            return
        if secret := next(filter(SECRET.search, names_in(self.request)), None):
            raise ValueError(f"request may not hold {secret!r}: it is kept in the store; use 'headers_env'")
        if path := key_in(self.request):
            raise ValueError(f"request.{'.'.join(path)} looks like a key: it would be stored; use 'headers_env'")
        if self.kind == "http" and not any(
            place in text for text in _texts(self.request) for place in ("{query}", "{messages}")
        ):
            raise ValueError("request: no text holds {query}, so the agent would never see the question")


_RETRIEVING = {"generator", "prompt", "retriever", "embeddings", "depth", "passages", "rrf_k"}
_REMOTE = {"headers_env", "request", "mapping", "price", "timeout_s", "max_attempts", "concurrency"}
_OF_KIND: Mapping[str, frozenset[str]] = {
    "rag": frozenset(_RETRIEVING),
    "fusion": frozenset({*_RETRIEVING, "queries", "queries_prompt"}),
    "baseline": frozenset({"ask", "generator", "prompt"}),
    "endpoint": frozenset({*_REMOTE, "base_url", "model", "api_key_env"}),
    "http": frozenset({*_REMOTE, "url"}),
    "python": frozenset({"function", "timeout_s", "concurrency"}),
    "file": frozenset({"answers", "documents", "run", "agent"}),
}
"""Keys that each kind of agent uses, besides ``kind`` and ``version``."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "rag": (),
    "fusion": (),
    "baseline": ("ask", "generator"),
    "endpoint": ("base_url", "model"),
    "http": ("url", "request", "mapping"),
    "python": ("function",),
    "file": ("answers",),
}


def judges_of_agents(specs: Iterable[AgentSpec]) -> list[str]:
    """Names of the judges that generate answers for agents, each once."""
    named = (spec.generator for spec in specs if spec.generator not in (None, EXTRACTIVE))
    return list(dict.fromkeys(name for name in named if name))


def needs_corpus(specs: Iterable[AgentSpec]) -> bool:
    """Whether some agent searches the corpus, or gives only the ids of the documents it retrieved."""
    return any(spec.kind in {"rag", "fusion"} or spec.run is not None for spec in specs)


def uses_corpus(specs: Iterable[AgentSpec]) -> bool:
    """Whether some agent needs the corpus, or may return documents without texts."""
    specs = list(specs)
    return needs_corpus(specs) or any(
        spec.kind == "python" or (spec.mapping is not None and spec.mapping.documents is not None) for spec in specs
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
