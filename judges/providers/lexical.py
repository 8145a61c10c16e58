"""The offline baseline judge: it counts words and says so. No model, no network, the same reply every time.

It reads ``Prompt.inputs`` and never the rendered prompt, so nothing that a text says *to* a judge has an effect; what a
text says does, and a text stuffed with the right words is overrated. How little to expect, on public data:

- relevance against people's labels (LLMJudge 2024 development set, 7,263 passages): Kendall's tau 0.15;
- verdicts against GPT-4's (RAGElo's Qdrant example, 117 games both decided): 64 % agreement, 50 % is chance;
- verdicts against people's (CrowdRAG-25, overall quality, 602 games both decided): 55 %.

It shows that everything around the judge works, and is the floor that a real judge must beat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from judges.errors import RejectedError
from judges.providers.lexical_queries import template_questions
from judges.providers.lexical_scores import AnswerScores, answer_scores, bm25_share, item_share
from judges.types import Completion, Inputs, Prompt, ReplyContract, Task, Verdict, word_per_value

MODEL = "lexical-1"
FULL_ITEM = 0.8
"""Share of an item's words in an answer that states it wholly: short facts lose a word or two to paraphrase."""
FULL_SHARE = 0.45
"""BM25 share of the highest label: each query term once in a passage of average length."""
TIE_MARGIN = 0.02
"""Answers whose overall scores differ by less are a tie."""

_QUANTITY_OF_CRITERION = {
    "relevance": "query",
    "accuracy": "precision",
    "completeness": "recall",
    "precision": "precision",
}
_Words = Mapping[str | int, int | str]


class LexicalProvider:
    """Judges by shared words, for any contract.

    - A document: BM25 share of the query (``bm25_share``). Of m labels in order of value, the k-th above the lowest
      needs k / (m - 1) of ``FULL_SHARE``. A passage and items of a test bank: likewise, the item in place of the query.
    - Two answers: the better ``AnswerScores.overall``, a tie within ``TIE_MARGIN``. Each answer is scored by itself
      against the documents shown, which all count alike.
    - Items and an answer or document, one label for each: share of the item's words in it (``item_share``). Of m
      labels, from "not at all" to "wholly", the k-th above the lowest needs k / (m - 1) of ``FULL_ITEM``.
    - Queries about a passage: its own sentences by templates (``template_questions``). Whether a passage answers a
      query: if it has ``FULL_ITEM`` of the query's words.
    - One answer on criteria: ``relevance`` is the query's share, ``completeness`` recall, ``accuracy`` and
      ``precision`` precision, any other criterion the overall score, each mapped to equal parts of its scale.
    """

    judges_names = False
    identity: Mapping[str, str | int | float | None] = {"provider": "lexical", "model": MODEL}

    async def complete(self, prompt: Prompt) -> Completion:
        """Judge at once.

        Raises:
            RejectedError: the prompt has neither document nor answer, a verdict that is not about A and B, or asks for
                an answer in words.
        """
        inputs, contract = prompt.inputs, prompt.contract
        if prompt.task is Task.QUERIES and contract.listed is not None:
            questions = template_questions(inputs.documents[0].document.text, contract.listed.most or 1)
            return Completion(json.dumps({contract.listed.name: questions}), MODEL)
        if prompt.task is Task.ANSWERABLE:
            return Completion(_answerable(inputs, contract), MODEL)
        if contract.form in ("text", "list"):
            raise RejectedError("bad_request", "the lexical judge counts words and cannot write an answer or a list")
        if contract.form == "labels":
            return Completion(_labelled(inputs, contract), MODEL)
        match len(inputs.answers):
            case 2:
                chosen, why = _verdict(inputs, contract)
            case 1:
                chosen, why = _grades(inputs, contract)
            case 0 if inputs.documents:
                chosen, why = _labels(inputs, contract)
            case _:
                raise RejectedError("bad_request", "the lexical baseline judges a document, an answer or two answers")
        return Completion(_reply(f"Lexical baseline, no language model: {why}", chosen, contract), MODEL)

    async def close(self) -> None:
        """Nothing is held."""


def _answerable(inputs: Inputs, contract: ReplyContract) -> str:
    """The higher of the choice's words where the passage has nearly all words of the query."""
    share = item_share(inputs.query.text, inputs.documents[0].document.text)
    ((name, words),) = contract.choices.items()
    word = _in_order(words)[-1 if share >= FULL_ITEM else 0]
    return _reply(
        f"Lexical baseline, no language model: the passage has {share:.3f} of its words.", {name: word}, contract
    )


def _labelled(inputs: Inputs, contract: ReplyContract) -> str:
    """One label per item, by its words in the answer or document; the contract lists labels from the highest down."""
    texts = [answer.text for answer in inputs.answers] or [entry.document.text for entry in inputs.documents]
    if len(texts) != 1:
        raise RejectedError("bad_request", "the lexical judge labels items by one answer or document")
    ((name, words),) = contract.choices.items()
    scale = word_per_value(words)[::-1]
    shares = [min(1.0, item_share(item, texts[0]) / FULL_ITEM) for item in inputs.items]
    return json.dumps({name: [scale[int(share * (len(scale) - 1))] for share in shares]})


def _labels(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    asked = inputs.items or (inputs.query.text,) * len(contract.choices)
    shares = [bm25_share(text, inputs.documents[0].document.text) for text in asked]
    chosen = {}
    for (name, words), share in zip(contract.choices.items(), shares, strict=True):
        scale = _in_order(words)
        chosen[name] = scale[int(min(1.0, share / FULL_SHARE) * (len(scale) - 1))]
    shown = ", ".join(f"{share:.3f}" for share in dict.fromkeys(shares))
    return chosen, f"BM25 share of the question's words in the document {shown}, {FULL_SHARE} counts as full."


def _grades(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    (scores,) = _scored(inputs)
    chosen = {}
    for name, words in contract.choices.items():
        value, scale = getattr(scores, _QUANTITY_OF_CRITERION.get(name, "overall")), _in_order(words)
        chosen[name] = scale[min(int(value * len(scale)), len(scale) - 1)]
    return chosen, f"{_shown(scores, inputs)}."


def _verdict(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    first, second = _scored(inputs)
    verdict = Verdict.A if first.overall > second.overall else Verdict.B
    if abs(first.overall - second.overall) < TIE_MARGIN:
        verdict = Verdict.TIE
    chosen = {name: _word_of(verdict, words) for name, words in contract.choices.items()}
    return chosen, f"A: {_shown(first, inputs)}. B: {_shown(second, inputs)}. Less than {TIE_MARGIN} apart is a tie."


def _scored(inputs: Inputs) -> list[AnswerScores]:
    return [answer_scores(inputs.query.text, _references(inputs), answer.text) for answer in inputs.answers]


def _references(inputs: Inputs) -> tuple[str, ...]:
    """The documents shown. All count alike: a label that the prompt does not hold must not decide a verdict."""
    return tuple(entry.document.text for entry in inputs.documents)


def _shown(scores: AnswerScores, inputs: Inputs) -> str:
    if not _references(inputs):
        return f"uses {scores.query:.3f} of the question's words, all there is to go by without a relevant document"
    return (
        f"covers {scores.recall:.3f} of the relevant content, {scores.precision:.3f} of its words are supported, "
        f"{scores.query:.3f} of the question's words, overall {scores.overall:.3f}"
    )


def _in_order(words: _Words) -> Sequence[str | int]:
    """A word for each value, lowest value first; where values are not numbers, as the contract lists them."""
    listed = word_per_value(words)
    if all(isinstance(value, int) for value in words.values()):
        return sorted(listed, key=lambda word: words[word])
    return listed


def _word_of(verdict: Verdict, words: _Words) -> str | int:
    for word, value in words.items():
        if value == verdict:
            return word
    raise RejectedError("bad_request", f"the prompt's choices have no {verdict.value!r} for the lexical baseline")


def _reply(reason: str, chosen: Mapping[str, str | int], contract: ReplyContract) -> str:
    if contract.form != "json":
        (word,) = chosen.values()
        return f"{reason}\n[[{word}]]" if contract.form == "brackets" else str(word)
    texts = dict.fromkeys(contract.spoken, reason)
    return json.dumps({**texts, **chosen}, ensure_ascii=False)
