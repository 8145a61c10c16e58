"""The fields of judge and agent declarations that are stored, without paths, addresses and names of variables."""

from __future__ import annotations

from typing import Any

from judges.spec import JudgeSpec
from retrieval_eval.agents.spec import AgentSpec

_AGENT_FIELDS = {"kind", "version", "generator", "retriever", "depth", "passages", "rrf_k", "queries", "ask", "model"}
"""The fields of an agent's declaration that are stored."""


def deciding(judge: JudgeSpec) -> dict[str, Any]:
    """The fields of a judge's declaration that affect its replies.

    Fields added in later versions are left out unless they are set, so that older identities stay the same.
    """
    names = {"provider", "model", "temperature", "seed", "max_tokens", "samples", "combine"}
    names |= {"structured_output", "system_role", "extra_body"}
    optional_names = {name for name in ("chat_template_kwargs", "version", "replies_as") if getattr(judge, name)}
    return judge.model_dump(mode="json", include=names | optional_names)


def stored_declaration(spec: AgentSpec) -> dict[str, Any]:
    """The fields of an agent's declaration that are stored, without default values."""
    return spec.model_dump(mode="json", include=_AGENT_FIELDS, exclude_defaults=True)
