"""The id of a judgment: a hash of the texts judged and of all settings, so that nothing is judged twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from judges.spec import JudgeSpec, cached_from
from judges.types import Prompt, ReplyContract
from judges.writing import estimated_tokens

_ENCODE = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode


def judgment_id(prompt: Prompt, identity: Mapping[str, str | int | float | None], *, by_name: bool = False) -> str:
    """A hash of 32 hexadecimal digits over a rendered prompt, its sample number, and the provider's ``identity``.

    Names of queries, documents and agents are left out: the id stays when an agent is renamed, and changes when an
    answer is edited. ``by_name`` includes them, for replayed verdicts, which are recorded by name and not by text.
    """
    content = {
        "task": prompt.task,
        "prompt": [prompt.name, prompt.version],
        "system": prompt.system,
        "user": prompt.user,
        "reply": _listed_contract(prompt.contract),
        "judge": dict(identity),
        "sample": prompt.sample,
        "names": _names(prompt) if by_name else None,
    }
    return hashlib.sha256(_ENCODE(content).encode("ascii")).hexdigest()[:32]


def request_id(judgment: str, prompt: Prompt) -> str:
    """The id of one request: the judgment's id; if the judge is asked again, also a hash of the earlier messages.

    It fits the limits of batch APIs: at most 64 letters, digits and hyphens.
    """
    if not prompt.turns:
        return judgment
    turns = json.dumps([[turn.role, turn.text] for turn in prompt.turns], separators=(",", ":"))
    return f"{judgment}-{hashlib.sha256(turns.encode('ascii')).hexdigest()[:16]}"


def cache_key(prompt: Prompt, spec: JudgeSpec) -> str:
    """Hash of the beginning that a prompt shares with others; empty if the judge's server does not cache it."""
    least = cached_from(spec) if prompt.shared else None
    if least is None or estimated_tokens(prompt.beginning) < least:
        return ""
    return hashlib.blake2b(prompt.beginning.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _listed_contract(contract: ReplyContract) -> list[object]:
    """The parts of a reply contract that enter the judgment's id.

    Unused fields are left out, so that ids stay the same when contracts get new fields. Settings of the parser
    (``leeway``, ``levels``) are left out too, since they do not change the prompt.
    """
    listed: list[object] = [contract.form, contract.reason, _listed(contract.choices)]
    if contract.listed is not None:
        rule = contract.listed
        return [contract.form, rule.name, rule.fewest, rule.most]
    if contract.length is not None:
        return [*listed, contract.length]
    return [*listed, list(contract.texts), contract.label] if contract.label is not None else listed


def _listed(choices: Mapping[str, Mapping[str | int, int | str]]) -> list[list[object]]:
    return [[name, [list(pair) for pair in values.items()]] for name, values in choices.items()]


def _names(prompt: Prompt) -> list[str]:
    inputs = prompt.inputs
    documents = [entry.document.doc_id for entry in inputs.documents] if not inputs.answers else []
    return [inputs.query.query_id, *documents, *(answer.agent for answer in inputs.answers)]
