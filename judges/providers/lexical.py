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
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from judges.contracts import written_reply
from judges.errors import RejectedError
from judges.types import Completion, Inputs, Prompt, ReplyContract, Task, Verdict, word_per_value
from judges.writing import SENTENCE_STOPS, search_terms

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
    "faithfulness": "precision",
    "answer_relevance": "query",
    "citation_quality": "precision",
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
                judge = _answerable if prompt.task is Task.ANSWERABLE else _labels
                chosen, why = judge(inputs, contract)
            case _:
                raise RejectedError("bad_request", "the lexical baseline judges a document, an answer or two answers")
        return Completion(written_reply(contract, chosen, f"Lexical baseline, no language model: {why}"), MODEL)

    async def close(self) -> None:
        """Nothing is held."""


def _answerable(inputs: Inputs, contract: ReplyContract) -> tuple[dict[str, str | int], str]:
    """The higher of the choice's words where the passage has nearly all words of the query."""
    share = item_share(inputs.query.text, inputs.documents[0].document.text)
    ((name, words),) = contract.choices.items()
    return {name: _in_order(words)[-1 if share >= FULL_ITEM else 0]}, f"the passage has {share:.3f} of its words."


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
    """All documents shown count alike: a label that the prompt does not hold must not decide a verdict."""
    documents = [entry.document.text for entry in inputs.documents]
    return [answer_scores(inputs.query.text, documents, answer.text) for answer in inputs.answers]


def _shown(scores: AnswerScores, inputs: Inputs) -> str:
    if not inputs.documents:
        return f"uses {scores.query:.3f} of the question's words, all there is to go by without a relevant document"
    return (
        f"covers {scores.recall:.3f} of the relevant content, {scores.precision:.3f} of its words are supported, "
        f"{scores.query:.3f} of the question's words, overall {scores.overall:.3f}"
    )


def _in_order(words: _Words) -> Sequence[str | int]:
    listed = word_per_value(words)
    if all(isinstance(value, int) for value in words.values()):
        return sorted(listed, key=lambda word: words[word])
    return listed


def _word_of(verdict: Verdict, words: _Words) -> str | int:
    for word, value in words.items():
        if value == verdict:
            return word
    raise RejectedError("bad_request", f"the prompt's choices have no {verdict.value!r} for the lexical baseline")


K1 = 1.2
B = 0.75
AVERAGE_LENGTH = 100
"""Content terms of a typical passage. Fixed, since a judge that sees one document at a time knows no collection."""
REFERENCE_TERMS = 80
"""How many of the heaviest reference terms an answer is expected to cover: about what a full paragraph holds."""
BETA = 2
"""Recall counts so many times as much as precision in ``AnswerScores.overall``."""

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
    """What the words of an answer say about it, each from 0 to 1.

    Attributes:
        query: share of the question's terms that the answer uses.
        recall: weight of the reference terms that the answer covers.
        precision: share of the answer's terms that some reference document holds.
        overall: F-measure of recall and precision with beta 2; without references ``query``.
    """

    query: float
    recall: float
    precision: float
    overall: float


@lru_cache(maxsize=4096)
def content_terms(text: str) -> tuple[str, ...]:
    """The terms of a text, in its order; all its words where it has function words only."""
    words = [word for each in search_terms(text) for word in each.split("_") if word]
    content = [word for word in words if word not in _FUNCTION_WORDS] or words
    return tuple(_stemmer().stemWords(content))


def bm25_share(query: str, document: str) -> float:
    """BM25 with equal weights for all query terms, as a share of what infinitely many occurrences would reach.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), equation 3.15, with k1 1.2, b 0.75 and the
    average length above. Each query term once in a passage of average length gives 0.45, twice 0.63.
    """
    wanted, terms = set(content_terms(query)), content_terms(document)
    if not wanted:
        return 0.0
    frequency = Counter(terms)
    saturation = K1 * (1 - B + B * len(terms) / AVERAGE_LENGTH)
    return sum(frequency[term] / (frequency[term] + saturation) for term in sorted(wanted)) / len(wanted)


def item_share(item: str, text: str) -> float:
    """Share of an item's terms, each counted once, that a text uses; 0 for an item without any."""
    wanted = set(content_terms(item))
    return len(wanted & set(content_terms(text))) / len(wanted) if wanted else 0.0


def answer_scores(query: str, references: Sequence[str], answer: str) -> AnswerScores:
    """Score one answer by itself; a verdict compares two such scores, so it cannot depend on the order shown.

    Args:
        query: the question.
        references: texts of the reference documents; may be empty.
        answer: the answer.
    """
    wanted, used = set(content_terms(query)), set(content_terms(answer))
    covered = len(wanted & used) / len(wanted) if wanted else 0.0
    if not references:
        return AnswerScores(covered, covered, covered, covered)
    weights, known = _reference_terms(query, tuple(references))
    recall = sum(weight for term, weight in weights.items() if term in used) / max(1, sum(weights.values()))
    precision = len(used & known) / len(used) if used else 0.0
    weighted = BETA**2 * precision + recall
    return AnswerScores(covered, recall, precision, (1 + BETA**2) * precision * recall / weighted if weighted else 0.0)


@lru_cache(maxsize=256)
def _reference_terms(query: str, references: tuple[str, ...]) -> tuple[Mapping[str, int], frozenset[str]]:
    """The heaviest terms of the references with their weights, and all their terms.

    A term gains, from every sentence that holds it, the number of the question's terms in that sentence: what stands
    near the question's words is what an answer should say.
    """
    wanted = set(content_terms(query))
    weights: defaultdict[str, int] = defaultdict(int)
    known: set[str] = set()
    for text in references:
        for sentence in _SENTENCE_END.split(text):
            terms = set(content_terms(sentence))
            known |= terms
            if near := len(terms & wanted):
                for term in sorted(terms):
                    weights[term] += near
    heaviest = sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))[:REFERENCE_TERMS]
    return dict(heaviest), frozenset(known)


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
_POINTING = frozenset("if when this that these those it they there here he she we you i what which who how".split())  # noqa: SIM905
_BEGINNING = frozenset("a all an any both each every few fewer in many more most no on one only some the with".split())  # noqa: SIM905


def template_questions(text: str, most: int) -> list[str]:
    """At most so many questions, spread over the text; none where no template fits."""
    questions = {_NOT_LETTERS.sub("", question).casefold(): question for question in _questions(text)}
    if len(questions) >= most:
        return _spread(list(questions.values()), most)
    for phrase in _phrases(text):
        questions.setdefault(_NOT_LETTERS.sub("", phrase).casefold(), f"What does one need to know about {phrase}?")
    return list(questions.values())[:most]


def _phrases(text: str) -> Iterator[str]:
    """Pairs of long words that stand together more than once, the most frequent ones first."""
    counts = Counter(match[1].lower() for match in _PAIR.finditer(text))
    for phrase, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        if count > 1:
            yield phrase


def _questions(text: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(text):
        sentence = match[0].strip()
        if heading := _HEADING.match(sentence):
            yield f"What is there on '{heading['heading']}'?"
        elif purpose := _PURPOSE.match(sentence):
            yield f"How do I {purpose['purpose']}?"
        elif cause := _CAUSE.match(sentence):
            if not _points(cause["fact"]):
                yield f"Why is it that {_within(cause['fact'])}?"
        elif (thing := _THING.match(sentence)) and not _points(thing["thing"]):
            yield f"What {thing['verb'].lower()} {_within(thing['thing'])}?"


def _points(phrase: str) -> bool:
    """Whether a phrase is about something that another sentence names."""
    return phrase.split(maxsplit=1)[0].lower() in _POINTING


def _within(phrase: str) -> str:
    """As it stands within a sentence: an article or the like loses its capital, what may be a name keeps it."""
    first = phrase.split(maxsplit=1)[0]
    return first.lower() + phrase[len(first) :] if first.lower() in _BEGINNING else phrase


def _spread(questions: Sequence[str], most: int) -> list[str]:
    if len(questions) <= most:
        return list(questions)
    return [questions[number * len(questions) // most] for number in range(most)]
