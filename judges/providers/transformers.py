"""Local models through Hugging Face transformers: causal chat models and the text-to-text family (FLAN-T5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from judges.contracts import allowed_replies, written_reply
from judges.errors import RejectedError
from judges.providers.local import LocalProvider
from judges.providers.local_model import Conversation, LocalModel
from judges.providers.local_scores import Scores, scored
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, ReplyContract, Usage, word_per_value

_EXPLAINED = re.compile(
    r"likeliest of \d+ replies, with probability [01]\.\d{3} \(([^,]+ [01]\.\d{6}(?:, [^,]+ [01]\.\d{6})*)\)"
)


class TransformersProvider(LocalProvider[LocalModel, Prompt, Completion]):
    """Asks a model for replies that begin alike, or are alike in length, together.

    With ``labels: likeliest`` nothing is written where the reply is one label: the allowed replies are scored, and the
    likeliest is the reply, with the probabilities of all of them in place of an explanation.

    Else replies are written: greedily unless a temperature is declared; a seed then fixes the run as a whole, not the
    single reply, since what is sampled together depends on what was waiting.
    """

    def __init__(self, spec: JudgeSpec) -> None:
        """Check what can be checked without loading."""
        template = json.dumps(spec.chat_template_kwargs, sort_keys=True)
        super().__init__(
            spec,
            temperature=spec.temperature,
            seed=spec.seed,
            max_tokens=spec.max_tokens,
            **({} if spec.labels == "written" else {"labels": spec.labels}),
            **({"chat_template_kwargs": template} if spec.chat_template_kwargs else {}),
        )

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, together with what else is waiting.

        Raises:
            RejectedError: the prompt does not fit the model, or memory.
            JudgeStoppedError: the model cannot be loaded.
        """
        return await self._batcher.submit(prompt)

    def _load(self) -> LocalModel:
        return LocalModel(self._local, self._spec)

    def _work(self, model: LocalModel, items: Sequence[Prompt]) -> Iterator[tuple[int, Completion | Exception]]:
        """Scored first: written replies take far longer."""
        conversations = [_conversation(prompt) for prompt in items]
        likeliest = self._spec.labels == "likeliest"
        allowed = [allowed_replies(prompt.contract) if likeliest else [] for prompt in items]
        to_score = [at for at, replies in enumerate(allowed) if replies]
        chosen = scored(model, [conversations[at] for at in to_score], [allowed[at] for at in to_score], self._size)
        for place, scores in chosen:
            at = to_score[place]
            yield at, self._likeliest(items[at].contract, allowed[at], scores)
        to_write = [at for at, replies in enumerate(allowed) if not replies]
        for place, reply in model.generate([conversations[at] for at in to_write], self._size):
            yield to_write[place], reply

    def _likeliest(
        self, contract: ReplyContract, replies: Sequence[str], scores: Scores | RejectedError
    ) -> Completion | Exception:
        if isinstance(scores, Exception):
            return scores
        text = explained(contract, replies[scores.best], scores)
        usage = Usage(scores.input_tokens, None, scores.output_tokens)
        return Completion(text, self._local.name, usage=usage, probability=scores.probabilities[scores.best])


def explained(contract: ReplyContract, reply: str, scores: Scores) -> str:
    """The likeliest reply with the probability of every label in place of the explanation, where there is one."""
    if contract.form != "brackets" and not (contract.form == "json" and contract.reason):
        return reply
    ((name, words),) = contract.choices.items()
    shares = zip(dict.fromkeys(words.values()), scores.probabilities, strict=True)
    each = ", ".join(f"{value} {share:.6f}" for value, share in shares)
    probability = scores.probabilities[scores.best]
    reason = f"likeliest of {len(scores.probabilities)} replies, with probability {probability:.3f} ({each})"
    return written_reply(contract, {name: word_per_value(words)[scores.best]}, reason)


def label_probabilities(reason: str) -> dict[str, float]:
    """The probability of each label, of an explanation that ``explained`` wrote; empty of any other."""
    match = _EXPLAINED.fullmatch(reason)
    if match is None:
        return {}
    pairs = (entry.rsplit(" ", 1) for entry in match[1].split(", "))
    return {value: float(share) for value, share in pairs}


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]
