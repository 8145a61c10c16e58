"""Sections of the configuration that declare agents and embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from judges.masking import key_in
from judges.sections import Count, Positive, PromptName, RelativePath, Section
from judges.spec import SECRET, Address, HeadersEnv, Named, Price, Variable, Version, names_in


class EmbeddingsSpec(Section):
    """Declares an embedder, which turns texts into vectors."""

    provider: Literal["auto", "openai", "transformers", "minilm", "hashed"] = "auto"
    """``openai`` (any server with OpenAI's embeddings API), ``transformers`` (a local model), ``minilm`` (a small
    model, with the extra ``dense``), ``hashed`` (hashed words, without their meaning), or ``auto``: ``minilm`` if
    installed, else ``hashed``."""
    model: str = ""
    """``openai``, ``transformers``: name of the embedding model."""
    path: RelativePath | None = None
    """``transformers``: folder with the model's files."""
    base_url: Address | None = None
    """``openai``: the server's address; OpenAI's own when left out."""
    api_key_env: Variable | None = None
    """``openai``: name of the environment variable that contains the API key."""
    headers_env: HeadersEnv = Field(default_factory=dict)
    """``openai``: names of HTTP headers, each with the environment variable that contains its value, as for judges."""
    dimensions: Count | None = None
    """``openai``: length of the vectors, if the model can shorten them."""
    query_prefix: str = ""
    """Text to put before each query when it is embedded."""
    document_prefix: str = ""
    """Text to put before each document when it is embedded."""
    batch: Count = 64
    """Number of texts in one request (or one batch of a local model)."""
    concurrency: Count = 4
    """``openai``: most requests at the same time."""
    timeout_s: Positive = 60.0
    """``openai``: most seconds for one attempt at a request."""
    max_attempts: Count = 6
    """``openai``: most attempts at one request."""
    usd_per_million_tokens: Annotated[float, Field(ge=0)] | None = None
    """``openai``: price of a million tokens in dollars."""
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
"""Each provider of embeddings, with the keys that it uses; keys that all providers use are not listed."""


def refuse_foreign(section: Section, what: str, table: Mapping[str, frozenset[str]], keys: frozenset[str]) -> None:
    """Raise ``ValueError`` for a key that this provider or kind does not use, since it may be a mistake."""
    foreign = frozenset().union(*table.values()) - keys
    for name in sorted(foreign & section.model_fields_set):
        users = ", ".join(repr(other) for other, used in table.items() if name in used)
        raise ValueError(f"{what} has no use for {name!r}, which goes with {users}")


AgentKind: TypeAlias = Literal["rag", "fusion", "baseline", "endpoint", "http", "python", "file"]
EXTRACTIVE = "extractive"
"""Name of the generator that uses no model: it picks sentences from the passages."""


class MappingSpec(Section):
    """JMESPath expressions that find the answer, documents, citations and costs in the JSON of an agent's response."""

    answer: str
    """Where the response contains the answer's text."""
    documents: str | None = None
    """Where the response contains the list of retrieved documents, best first."""
    doc_id: str = "id"
    """Where an entry of ``documents`` contains the document's id; without one, the id is a hash of its text."""
    text: str = "text"
    """Where an entry of ``documents`` contains the document's text."""
    score: str = "score"
    """Where an entry of ``documents`` contains the document's score."""
    title: str = "title"
    """Where an entry of ``documents`` contains the document's title."""
    citations: str | None = None
    """Where the response contains the list of cited documents, by id or by number from 1; when left out, the ``[1]`` in
    the answer are the citations."""
    input_tokens: str | None = None
    """Where the response contains the number of tokens sent to a model."""
    output_tokens: str | None = None
    """Where the response contains the number of tokens that a model wrote."""
    cost_usd: str | None = None
    """Where the response contains its cost in dollars."""

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
    version: Version = ""
    """Change it when the system behind the agent changes, or write [`${GIT_SHA}`](ci.md#todays-system), so that the
    agent answers all queries again. ``python``: also
    when a part of the function changes that [cannot be read](judges.md#functions)."""
    generator: str | None = None
    """Name of the judge that writes the answers. ``rag``, ``fusion``: by default ``extractive``, which needs no judge
    and picks sentences from the passages."""
    retriever: Literal["bm25", "dense", "hybrid"] = "bm25"
    """How documents are retrieved: ``bm25``, ``dense``, or ``hybrid``, which merges both by reciprocal rank."""
    depth: Count = 10
    """Number of documents to retrieve and record for each query."""
    passages: Count = 5
    """Number of retrieved documents, best first, that the generator sees."""
    rrf_k: Count = 60
    """The constant k of reciprocal rank fusion."""
    queries: Count = 4
    """``fusion``: number of further search queries."""
    ask: Literal["article", "page", "answer"] | None = None
    """``baseline``: the kind of text that the model writes: an ``article``, a ``page`` or an ``answer``."""
    model: str = ""
    """``endpoint``: name of the model at the server."""

    def stored(self) -> dict[str, Any]:
        """The settings that the store keeps, as JSON without default values."""
        return self.model_dump(mode="json", include=set(AgentSettings.model_fields), exclude_defaults=True)


class AgentSpec(AgentSettings):
    """One entry under ``agents:``, which declares a system to compare."""

    prompt: PromptName | None = None
    """``rag``, ``fusion``, ``baseline``: the prompt that asks for an answer: a packaged prompt, or the path of your
    own."""
    embeddings: EmbeddingsSpec = EmbeddingsSpec.model_construct()
    """``dense``, ``hybrid``: the embedder that turns texts into vectors."""
    queries_prompt: PromptName = "fusion_queries"
    """``fusion``: the prompt that asks for further search queries."""
    base_url: Address | None = None
    """``endpoint``: the server's address, up to ``/chat/completions``."""
    api_key_env: Variable | None = None
    """``endpoint``: name of the environment variable that contains the API key."""
    url: Address | None = None
    """``http``: the address to which requests are posted."""
    headers_env: HeadersEnv = Field(default_factory=dict)
    """``endpoint``, ``http``: names of HTTP headers, each with the environment variable that contains its value."""
    request: dict[str, Any] | None = None
    """``http``: the JSON to send, with the placeholders ``{query}``, ``{query_id}``, ``{messages}``. ``endpoint``:
    fields to add to the request."""
    mapping: MappingSpec | None = None
    """``endpoint``, ``http``: JMESPath expressions that find the answer and its details in the JSON of a response."""
    price: Price | None = None
    """Dollars per million tokens, for responses that report no ``cost_usd``."""
    timeout_s: Positive = 120.0
    """Most seconds for one attempt at a request or call."""
    max_attempts: Count = 3
    """Most attempts at one request."""
    concurrency: Count = 4
    """Most requests or calls at the same time."""
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    """How many times each query is asked anew, to measure [how much answers vary](repeats.md); every answer is kept."""
    function: Named | None = None
    """``python``: the function that answers a query, as ``module:function`` or ``file.py:function``."""
    answers: RelativePath | None = None
    """``file``: a table of answers ``qid, answer``, with the column ``agent`` if it contains several agents."""
    documents: RelativePath | None = None
    """``file``: a table of retrieved documents ``qid, did, document``, with ``agent``, ``rank`` and ``score`` if
    known."""
    run: RelativePath | None = None
    """``file``: a TREC run with documents of the corpus, instead of ``documents``."""
    agent: str | None = None
    """``file``: the agent's name in the tables, if it differs from the agent's name in the configuration."""

    @property
    def told_id(self) -> bool:
        """Whether the agent sees the query's id, so that two queries with the same text need separate replies."""
        return self.kind in {"python", "file"} or any("{query_id}" in text for text in _texts(self.request))

    @property
    def sends_no_messages(self) -> bool:
        """Whether the agent's own ``request`` lacks a place for the messages before a query."""
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
        if self.kind == "file" and self.repeats > 1:
            raise ValueError("'repeats' asks a system anew; the answers of a file have a column 'repeat' instead")
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
"""Each kind of agent, with the keys that it uses besides ``kind`` and ``version``."""

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
    """Names of the judges that generate answers for these agents, each once."""
    named = (spec.generator for spec in specs if spec.generator not in (None, EXTRACTIVE))
    return list(dict.fromkeys(name for name in named if name))


def needs_corpus(specs: Iterable[AgentSpec]) -> bool:
    """Whether an agent cannot work without the corpus: it searches it, or replays a run, which has no texts."""
    return any(spec.kind in {"rag", "fusion"} or spec.run is not None for spec in specs)


def uses_corpus(specs: Iterable[AgentSpec]) -> bool:
    """Whether an agent needs the corpus, or may return documents by id, whose texts the corpus then provides."""
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
