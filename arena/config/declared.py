"""What of the declarations of judges and agents a store keeps: no path, address or name of a variable."""

from __future__ import annotations

from typing import Any

from judges.spec import JudgeSpec
from retrieval_eval.agents.spec import AgentSpec

_TOLD = {"kind", "version", "generator", "retriever", "depth", "passages", "rrf_k", "queries", "ask", "model"}
"""What of a declaration goes into the store; no path, address or variable name."""


def deciding(judge: JudgeSpec) -> dict[str, Any]:
    """What of a judge's declaration decides its replies; what came later is left out where it is not declared."""
    names = {"provider", "model", "temperature", "seed", "max_tokens", "samples", "combine"}
    names |= {"structured_output", "system_role", "extra_body"}
    later = {name for name in ("chat_template_kwargs", "version", "replies_as") if getattr(judge, name)}
    return judge.model_dump(mode="json", include=names | later)


def told_settings(spec: AgentSpec) -> dict[str, Any]:
    """What of a declaration goes into the store."""
    return spec.model_dump(mode="json", include=_TOLD, exclude_defaults=True)
