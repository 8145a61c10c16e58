"""How embeddings are declared in the configuration, and what other declarations of agents share with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, model_validator

from judges.sections import Count, Positive, RelativePath, Section

SECRET = re.compile(r"api[-_ ]?key|secret|password|authorization|credential|token$|^key$", re.IGNORECASE)
"""Names of fields that hold what belongs in the environment."""


def _usable_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not an address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ValueError("an address begins with http:// or https:// and names a host")
    if parts.username is not None or any(SECRET.search(name) for name, _ in parse_qsl(parts.query)):
        raise ValueError("an address holds no key or password; send it in a header from the environment")
    return url


Address = Annotated[str, AfterValidator(_usable_address)]


class EmbeddingsSpec(Section):
    """What turns texts into vectors."""

    provider: Literal["auto", "openai", "transformers", "minilm", "hashed"] = "auto"
    """``openai``: any server with OpenAI's embeddings. ``transformers``: a local model, mean of its tokens.
    ``minilm``: the packaged MiniLM of the ``dense`` extra. ``hashed``: hashed words, a stand-in that knows no meaning.
    ``auto``: ``minilm`` where it is installed, else ``hashed``."""
    model: str = ""
    path: RelativePath | None = None
    """``transformers``: a local model folder."""
    base_url: Address | None = None
    api_key_env: str | None = None
    dimensions: Count | None = None
    """``openai``: asked of models that can shorten their vectors."""
    query_prefix: str = ""
    """Put before each query, where the model was trained so (``query: ``)."""
    document_prefix: str = ""
    batch: Count = 64
    concurrency: Count = 4
    timeout_s: Positive = 60.0
    max_attempts: Count = 6
    usd_per_million_tokens: Annotated[float, Field(ge=0)] | None = None
    device: str | None = None

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
        | {"concurrency"}
    ),
    "transformers": frozenset({"model", "path", "device"}),
    "minilm": frozenset({"device"}),
    "hashed": frozenset(),
    "auto": frozenset(),
}
"""Keys that only some providers of embeddings have a use for."""


def refuse_foreign(section: Section, what: str, table: Mapping[str, frozenset[str]], own: frozenset[str]) -> None:
    """A key that means nothing here is a misunderstanding, so it is not passed over."""
    foreign = frozenset().union(*table.values()) - own
    for name in sorted(foreign & section.model_fields_set):
        users = ", ".join(repr(other) for other, keys in table.items() if name in keys)
        raise ValueError(f"{what} has no use for {name!r}, which goes with {users}")
