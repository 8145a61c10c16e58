"""The provider ``lexical``: an offline baseline that counts words, without model or network, deterministically.

It uses ``Prompt.inputs`` and never the rendered prompt, so instructions to a judge in a text have no effect. A text
stuffed with the right words is overrated. Its agreement on public data is low:

- relevance against human labels (LLMJudge 2024 development set, 7,263 passages): Kendall's tau 0.15;
- verdicts against GPT-4's verdicts (RAGElo's Qdrant example, 117 games both decided): 64 % agreement, 50 % is chance;
- verdicts against human verdicts (CrowdRAG-25, overall quality, 602 games both decided): 55 %.

Refusals are another matter: few words make one, see ``judges.refusals``.

It serves to test a configuration without cost, and as the baseline that a real judge must beat.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from judges.contracts import written_reply
from judges.errors import RejectedError
from judges.refusals import REFUSALS, is_told, reaction
from judges.types import Completion, Inputs, Prompt, ReplyContract, Task, Verdict, word_per_value
from judges.writing import SENTENCE_STOPS, search_terms

MODEL = "lexical-1"
FULL_ITEM = 0.8
"""Share of a test item's words that an answer must contain to support the item fully: paraphrases lose a word or
two."""
FULL_SHARE = 0.45
"""BM25 share from which a passage gets the highest label: each query term once in a passage of average length."""
TIE_MARGIN = 0.02
"""Two answers tie if their overall scores (``AnswerScores.overall``) differ by less than this."""

_QUANTITY_OF_CRITERION = {
    "relevance": "query",
    "accuracy": "precision",
    "completeness": "recall",
    "precision": "precision",
    "faithfulness": "precision",
    "answer_relevance": "query",
    "citation_quality": "precision",
}
_Words = Mapping[str | int, int | str]


class LexicalProvider:
    """Judges by shared words, for any contract.

    - A document: BM25 share of the query (``bm25_share``). Of m labels in order of value, the k-th above the lowest
      needs k / (m - 1) of ``FULL_SHARE``. A passage and test items: the same rule, with each item as the query.
    - Two answers: the higher ``AnswerScores.overall``, a tie within ``TIE_MARGIN``. Each answer is scored separately
      against the documents shown, which have equal weights.
    - Items and an answer or document, one label for each: share of the item's words in it (``item_share``). Of m
      labels, from "not at all" to "wholly", the k-th above the lowest needs k / (m - 1) of ``FULL_ITEM``.
    - Queries about a passage: made from its sentences by templates (``template_questions``). A passage answers a
      query if it contains ``FULL_ITEM`` of the query's words.
    - How an answer reacts to its question: ``judges.refusals``. An answer to a question that nothing in the documents
      answers has all scores 1 if it does not answer, else 0; so has an item that asks for this.
    - One answer on criteria: ``relevance`` is the query's share, ``completeness`` recall, ``accuracy`` and
      ``precision`` precision, any other criterion the overall score, each mapped to equal parts of its scale.
    """

    judges_names = False
    identity: Mapping[str, str | int | float | None] = {"provider": "lexical", "model": MODEL}

    async def complete(self, prompt: Prompt) -> Completion:
        inputs, contract = prompt.inputs, prompt.contract
        if prompt.task is Task.QUERIES and contract.listed is not None:
            questions = template_questions(inputs.documents[0].document.text, contract.listed.most or 1)
            return Completion(json.dumps({contract.listed.name: questions}), MODEL)
        if contract.form in ("text", "list"):
            raise RejectedError("bad_request", "the lexical judge counts words and cannot write an answer or a list")
        if contract.form == "labels":
            return Completion(_labelled(inputs, contract), MODEL)
        match len(inputs.answers):
            case 2:
                chosen, why = _verdict(inputs, contract)
            case 1:
                chosen, why = (_reacts if prompt.task is REFUSALS else _grades)(inputs, contract)
            case 0 if inputs.documents:
                judge = _answerable if prompt.task is Task.ANSWERABLE else _labels
                chosen, why = judge(inputs, contract)
            case _:
                raise RejectedError("bad_request", "the lexical baseline judges a document, an answer or two answers")
        return Completion(written_reply(contract, chosen, f"Lexical baseline, no language model: {why}"), MODEL)

    async def close(self) -> None:
        pass


def _reacts(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    reacts = reaction(inputs.answers[0].text)
    ((name, words),) = contract.choices.items()
    return {name: _ascending(words)[("answers", "asks back", "refuses").index(reacts)]}, f"by its words it {reacts}."


def _answerable(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    share = max(item_share(inputs.query.text, entry.document.text) for entry in inputs.documents)
    ((name, words),) = contract.choices.items()
    return {name: _ascending(words)[-1 if share >= FULL_ITEM else 0]}, f"the passage has {share:.3f} of its words."


def _labelled(inputs: Inputs, contract: ReplyContract) -> str:
    texts = [answer.text for answer in inputs.answers] or [entry.document.text for entry in inputs.documents]
    if len(texts) != 1:
        raise RejectedError("bad_request", "the lexical judge labels items by one answer or document")
    ((name, words),) = contract.choices.items()
    scale = word_per_value(words)[::-1]  # contracts list the highest label first
    shares = [min(1.0, item_share(item, texts[0]) / FULL_ITEM) for item in inputs.items]
    return json.dumps({name: [scale[int(share * (len(scale) - 1))] for share in shares]})


def _labels(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    questions = inputs.items or (inputs.query.text,) * len(contract.choices)
    passage = inputs.documents[0].document.text
    shares = [item_share(text, passage) if is_told(text) else bm25_share(text, passage) for text in questions]
    chosen = {}
    for (name, words), share in zip(contract.choices.items(), shares, strict=True):
        scale = _ascending(words)
        chosen[name] = scale[int(min(1.0, share / FULL_SHARE) * (len(scale) - 1))]
    shown = ", ".join(f"{share:.3f}" for share in dict.fromkeys(shares))
    return chosen, f"BM25 share of the question's words in the document {shown}, {FULL_SHARE} counts as full."


def _grades(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    (scores,) = _scored(inputs)
    chosen = {}
    for name, words in contract.choices.items():
        value, scale = getattr(scores, _QUANTITY_OF_CRITERION.get(name, "overall")), _ascending(words)
        if name == "correctness" and (reference := inputs.query.reference) is not None:
            value = answer_scores(inputs.query.text, [reference], inputs.answers[0].text).recall
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
    """Score each answer in a prompt. All documents have equal weights, since the prompt does not show their labels."""
    documents = [entry.document.text for entry in inputs.documents]
    if inputs.query.answerability == "unanswerable":
        declined = (float(reaction(answer.text) != "answers") for answer in inputs.answers)
        return [AnswerScores(value, value, value, value) for value in declined]
    return [answer_scores(inputs.query.text, documents, answer.text) for answer in inputs.answers]


def _shown(scores: AnswerScores, inputs: Inputs) -> str:
    if inputs.query.answerability == "unanswerable":
        return f"{'declines' if scores.overall else 'answers'} where nothing in the documents answers"
    if not inputs.documents:
        return f"uses {scores.query:.3f} of the question's words, all there is to go by without a relevant document"
    return (
        f"covers {scores.recall:.3f} of the relevant content, {scores.precision:.3f} of its words are supported, "
        f"{scores.query:.3f} of the question's words, overall {scores.overall:.3f}"
    )


def _ascending(words: _Words) -> Sequence[str | int]:
    listed = word_per_value(words)
    if all(isinstance(value, int) for value in words.values()):
        return sorted(listed, key=lambda word: words[word])
    return listed


def _word_of(verdict: Verdict, words: _Words) -> str | int:
    if (word := next((word for word, value in words.items() if value == verdict), None)) is not None:
        return word
    raise RejectedError("bad_request", f"the prompt's choices have no {verdict.value!r} for the lexical baseline")


K1 = 1.2
B = 0.75
AVERAGE_LENGTH = 100
"""Number of content terms in a typical passage. It is fixed, since a judge sees single documents and no collection."""
REFERENCE_TERMS = 80
"""How many of the heaviest reference terms an answer is expected to cover: about as many as a full paragraph has."""
BETA = 2
"""Weight of recall relative to precision in ``AnswerScores.overall``."""

_SENTENCE_END = re.compile(rf"(?<=[.!?])\s+|\n+|(?<=[{SENTENCE_STOPS}])")
_FUNCTION_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing don down during each few for from further had has have having he her here hers him his
    how i if in into is it its itself just ll me more most my no nor not now of off on once only or other our ours out
    over own re s same she should so some such t than that the their theirs them then there these they this those
    through to too under until up ve very was we were what when where which while who whom why will with would you your
    yours""".split()  # noqa: SIM905 - a paragraph is easier to read than a list
)


class AnswerScores(Struct, frozen=True):
    """Scores of an answer by its words, each from 0 to 1.

    Attributes:
        query: share of the question's terms that the answer uses.
        recall: share, by weight, of the reference terms that the answer covers.
        precision: share of the answer's terms that some reference document contains.
        overall: F-measure of recall and precision with beta 2; without references, the same as ``query``.
    """

    query: float
    recall: float
    precision: float
    overall: float


@lru_cache(maxsize=4096)
def content_terms(text: str) -> tuple[str, ...]:
    """The stemmed content words of a text, in order; all its words if it has only function words."""
    words = [word for each in search_terms(text) for word in each.split("_") if word]
    content = [word for word in words if word not in _FUNCTION_WORDS] or words
    return tuple(_stemmer().stemWords(content))


def bm25_share(query: str, document: str) -> float:
    """BM25 with equal weights for all query terms, as a share of its limit for infinitely many occurrences.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), equation 3.15, with k1 1.2, b 0.75 and
    ``AVERAGE_LENGTH``. If a passage of average length has each query term once, the share is 0.45; twice, 0.63.
    """
    query_terms, terms = set(content_terms(query)), content_terms(document)
    if not query_terms:
        return 0.0
    frequency = Counter(terms)
    saturation = K1 * (1 - B + B * len(terms) / AVERAGE_LENGTH)
    return sum(frequency[term] / (frequency[term] + saturation) for term in sorted(query_terms)) / len(query_terms)


def item_share(item: str, text: str) -> float:
    """Share of a test item's distinct terms that occur in a text; 0 for an item without terms.

    A text has all of an item that asks whether it declines, or nothing of it, see ``judges.refusals``.
    """
    if is_told(item):
        return float(reaction(text) != "answers")
    item_terms = set(content_terms(item))
    return len(item_terms & set(content_terms(text))) / len(item_terms) if item_terms else 0.0


def answer_scores(query: str, references: Sequence[str], answer: str) -> AnswerScores:
    """Score one answer. A verdict compares two such scores, so it does not depend on the order of the answers.

    Args:
        query: the question.
        references: texts of the reference documents; may be empty.
        answer: the answer.
    """
    query_terms, answer_terms = set(content_terms(query)), set(content_terms(answer))
    covered = len(query_terms & answer_terms) / len(query_terms) if query_terms else 0.0
    if not references:
        return AnswerScores(covered, covered, covered, covered)
    weights, reference_terms = _reference_terms(query, tuple(references))
    recall = sum(weight for term, weight in weights.items() if term in answer_terms) / max(1, sum(weights.values()))
    precision = len(answer_terms & reference_terms) / len(answer_terms) if answer_terms else 0.0
    weighted = BETA**2 * precision + recall
    return AnswerScores(covered, recall, precision, (1 + BETA**2) * precision * recall / weighted if weighted else 0.0)


@lru_cache(maxsize=256)
def _reference_terms(query: str, references: tuple[str, ...]) -> tuple[Mapping[str, int], frozenset[str]]:
    """The heaviest terms of the references with their weights, and the set of all their terms.

    A term's weight is the sum, over the sentences that contain it, of the number of the question's terms there: an
    answer should contain the terms near the question's words.
    """
    query_terms = set(content_terms(query))
    weights: defaultdict[str, int] = defaultdict(int)
    all_terms: set[str] = set()
    for text in references:
        for sentence in _SENTENCE_END.split(text):
            terms = set(content_terms(sentence))
            all_terms |= terms
            if shared := len(terms & query_terms):
                for term in sorted(terms):
                    weights[term] += shared
    heaviest = sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))[:REFERENCE_TERMS]
    return dict(heaviest), frozenset(all_terms)


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORDS = r"[\w'-]+(?: [\w'-]+){0,4}?"
_THING = re.compile(
    rf"^(?P<thing>(?:(?:the|an?) )?{_WORDS}) (?P<verb>is|are) (?:an?|the|one of|how|what) ", re.IGNORECASE
)
_PURPOSE = re.compile(r"^To (?P<purpose>[a-z][\w' -]{5,80}), ")
_CAUSE = re.compile(r"^(?P<fact>[\w', -]{5,80}? (?:is|are|has|have|can|must|was|were) [\w', -]{3,60}?),? because ")
_HEADING = re.compile(r"^(?P<heading>[A-Z][\w'&/ -]{2,60})$")
_PAIR = re.compile(r"(?=\b([^\W\d_]{5,} [^\W\d_]{5,})\b)")
_NOT_LETTERS = re.compile(r"[\W_]+")
_POINTERS = frozenset("if when this that these those it they there here he she we you i what which who how".split())  # noqa: SIM905
_LOWERED = frozenset("a all an any both each every few fewer in many more most no on one only some the with".split())  # noqa: SIM905


def template_questions(text: str, most: int) -> list[str]:
    """Make at most ``most`` questions about a text by templates, spread over the text; none if no template fits."""
    questions = {_NOT_LETTERS.sub("", question).casefold(): question for question in _questions(text)}
    if len(questions) >= most:
        found = list(questions.values())
        return [found[number * len(found) // most] for number in range(most)]
    # Pairs of adjacent long words that occur more than once, the most frequent ones first.
    counts = Counter(match[1].lower() for match in _PAIR.finditer(text))
    for phrase, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        if count > 1:
            questions.setdefault(_NOT_LETTERS.sub("", phrase).casefold(), f"What does one need to know about {phrase}?")
    return list(questions.values())[:most]


def _questions(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        sentence = match[0].strip()
        if heading := _HEADING.match(sentence):
            yield f"What is there on '{heading['heading']}'?"
        elif purpose := _PURPOSE.match(sentence):
            yield f"How do I {purpose['purpose']}?"
        elif cause := _CAUSE.match(sentence):
            if not _refers_back(cause["fact"]):
                yield f"Why is it that {_in_sentence(cause['fact'])}?"
        elif (thing := _THING.match(sentence)) and not _refers_back(thing["thing"]):
            yield f"What {thing['verb'].lower()} {_in_sentence(thing['thing'])}?"


def _refers_back(phrase: str) -> bool:
    """Whether a phrase begins with a word that refers to another sentence, such as a pronoun."""
    return phrase.split(maxsplit=1)[0].lower() in _POINTERS


def _in_sentence(phrase: str) -> str:
    """A phrase as it is written within a sentence: an article or similar word at its start gets a lower-case letter."""
    first = phrase.split(maxsplit=1)[0]
    return first.lower() + phrase[len(first) :] if first.lower() in _LOWERED else phrase
