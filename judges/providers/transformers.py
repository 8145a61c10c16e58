"""Local models through Hugging Face transformers: causal chat models and the text-to-text family (FLAN-T5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from judges.errors import RejectedError
from judges.providers.batching import Batcher
from judges.providers.likeliest import allowed_replies, explained
from judges.providers.local_model import Conversation, Decoding, Generation, Layout, LocalModel
from judges.providers.local_scores import Scores, scored
from judges.providers.local_source import local_source
from judges.providers.texts import storable
from judges.spec import JudgeSpec
from judges.types import Completion, Prompt, ReplyContract, Usage


class TransformersProvider:
    """Runs a model from a local folder (``path``) or by name (``model``).

    Up to ``concurrency`` prompts are put into batches of at most ``batch_size`` that begin alike or are alike in
    length; the replies of each are handed over when it ends. With ``labels: likeliest`` nothing is written where the
    reply is one label: the allowed replies are scored, and the likeliest is the reply, with the probabilities of all of
    them in place of an explanation.

    Else replies are written: greedily unless a temperature is declared; a seed then fixes the run as a whole, not the
    single reply, since what is sampled together depends on what was waiting. The model is loaded with the first prompt.
    """

    judges_names = False

    def __init__(self, spec: JudgeSpec) -> None:
        """Check what can be checked without loading.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            InputError: the folder is missing or holds no model, or the device is not there.
        """
        self._local = local_source(spec)
        self._decoding = Decoding(spec.max_tokens, spec.temperature, spec.seed)
        self._layout = Layout(self._local.device, spec.device_map, spec.attention, spec.chat_template_kwargs)
        self._scores_labels = spec.labels == "likeliest"
        self._size = spec.batch_size or spec.concurrency
        self._batcher: Batcher[LocalModel, Prompt, Completion] = Batcher(self._load, self._replies, spec.concurrency)
        self.identity: Mapping[str, str | int | float | None] = {
            "provider": "transformers",
            "model": self._local.name,
            "weights": self._local.weights,
            "temperature": spec.temperature,
            "seed": spec.seed,
            "max_tokens": spec.max_tokens,
            **({} if spec.labels == "written" else {"labels": spec.labels}),
            **_told_template(spec),
        }

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask once, together with what else is waiting.

        Raises:
            RejectedError: the prompt does not fit the model, or memory.
            JudgeStoppedError: the model cannot be loaded.
        """
        return await self._batcher.submit(prompt)

    def _load(self) -> LocalModel:
        self._local.say_it_loads()
        return LocalModel(self._local.source, self._layout, self._decoding)

    def _replies(self, model: LocalModel, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Completion | Exception]]:
        """Scored first: written replies take far longer."""
        allowed = [allowed_replies(prompt.contract) if self._scores_labels else [] for prompt in prompts]
        to_score = [at for at, replies in enumerate(allowed) if replies]
        conversations = [_conversation(prompts[at]) for at in to_score]
        for place, scores in scored(model, conversations, [allowed[at] for at in to_score], self._size):
            at = to_score[place]
            yield at, self._likeliest(prompts[at].contract, allowed[at], scores)
        to_write = [at for at, replies in enumerate(allowed) if not replies]
        for place, reply in model.generate([_conversation(prompts[at]) for at in to_write], self._size):
            yield to_write[place], self._written(reply)

    def _written(self, reply: Generation | RejectedError) -> Completion | Exception:
        if isinstance(reply, Exception):
            return reply
        usage = Usage(reply.input_tokens, None, reply.output_tokens)
        return Completion(storable(reply.text), self._local.name, reply.finish, usage)

    def _likeliest(
        self, contract: ReplyContract, replies: Sequence[str], scores: Scores | RejectedError
    ) -> Completion | Exception:
        if isinstance(scores, Exception):
            return scores
        probability = scores.probabilities[scores.best]
        text = explained(contract, replies[scores.best], scores.probabilities)
        usage = Usage(scores.input_tokens, None, scores.output_tokens)
        return Completion(text, self._local.name, usage=usage, probability=probability)

    async def close(self) -> None:
        """Release the model's memory."""
        await self._batcher.close()


def _told_template(spec: JudgeSpec) -> dict[str, str]:
    """What the chat template is told decides the reply, and is a part of the identity where there is anything."""
    told = spec.chat_template_kwargs
    return {"chat_template_kwargs": json.dumps(told, sort_keys=True)} if told else {}


def _conversation(prompt: Prompt) -> Conversation:
    messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
    messages.append({"role": "user", "content": prompt.user})
    return [*messages, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)]
