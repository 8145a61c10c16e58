"""Reads the citations of answers and computes citation precision: the share of cited documents that are relevant.

For one answer: relevant cited documents / cited documents with a label; each document counts once, however often the
answer cites it. The precision is undefined if the answer cites nothing or only documents without a label. Such queries
are counted but left out of the mean, because an answer without citations has no wrong ones. An agent's precision is the
mean over its remaining queries.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from judges.types import CITATIONS, Answer, repeat_of
from retrieval_eval.scores.claims import (
    INSIDE,
    MARK,
    Parts,
    claim_lines,
    code_lines,
    is_introduction,
    parts_of,
    sentences,
)
from retrieval_eval.stats.bootstrap import ALONE, Clusters
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.repeats import averaged
from retrieval_eval.stats.scores import Scores

_BRACKETS = re.compile(rf"\[({INSIDE})\]")
_SEPARATOR = re.compile(r"[,;\uff0c\u3001&]|\band\b|(?<=\d)\s+(?=\d)")
_KIND = r"(?:doc(?:ument)?|source|passage|ref(?:erence)?|citation)s?"
_NUMBER = re.compile(
    rf"(?:{_KIND}[ .:#_-]*|#)?(\d{{1,4}})(?:\s*[-\u2013\u2014]\s*(\d{{1,3}}))?", re.ASCII | re.IGNORECASE
)
"""Matches the number of one document, or a range of numbers."""
_TITLED = re.compile(
    rf"({_KIND}[ .#_-]*\d{{1,4}})\s*[:|\u2013\u2014-]\s.{{1,500}}?(?=$|[;,]\s*{_KIND}[ .#_-]*\d)",
    re.ASCII | re.IGNORECASE,
)
"""Matches a document's number followed by its title."""
_OF_SEARCH = re.compile(r"(\d{1,3}):(\d{1,3})\u2020.*|turn(\d{1,3})(?:file|search|view|news|fetch)(\d{1,3})")
"""Matches citations by OpenAI's search tools: the number of a search, and the number of its result, from 0."""
_FROM_ZERO = "\ufdd2"
"""Prefix of a document number that counts from 0, even if the agent's other numbers count from 1."""
_OTHER_BRACKETS = re.compile(
    r"[\u3010\uff3b][^\S\n]*(?:(\d[\d \u3000,;\uff0c\u3001\u2013-]*)(?:\u2020[^\u3011\uff3d\n]*)?"
    r"|(\d{1,3}:\d{1,3}\u2020)[^\u3011\uff3d\n]*)[\u3011\uff3d]"
)
"""Matches citations in lenticular or full-width brackets, as OpenAI's assistants write them."""
_PRIVATE = re.compile(r"\ue200(?:file)?cite((?:\ue202turn\d{1,3}[a-z]{1,10}\d{1,3}){1,50})\ue201")
"""Matches citations between Unicode's private-use characters, as ChatGPT writes them."""
_AFTER_WORDS = r"(?:(?<=[^\W\d_]{3})|(?<=[.,;:!?)\]\"'\u201d\u2019])|(?<=[^\W\d_]{3}\s))"
"""Matches the place after a word or punctuation, where a superscript number is a citation and not an exponent."""
_RAISED = re.compile(
    _AFTER_WORDS + r"(?:<sup>[^\S\n]*\[?(\d{1,3}(?:[^\S\n]*[,;\u2013-][^\S\n]*\d{1,3}){0,50})\]?[^\S\n]*</sup>"
    r"|\^\[?(\d{1,3}(?:[,;\u2013-]\d{1,3}){0,50})\]?\^|([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,3}))",
    re.IGNORECASE,
)
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_FOOTNOTE = re.compile(r"\[\^(\d{1,3})\](:?)|(\[\d{1,3}\])\([^\s()]{1,2000}\)")
"""Matches references to Markdown footnotes, and links whose text is a number."""
_DEFINED = re.compile(r"^\[\^[^\]\n]+\]:.*$", re.MULTILINE)
"""Matches a line that defines a footnote."""
_ROUND = re.compile(r"(?<=[^\s(:])(\s?)\((\d{1,3}(?:\s*[,;]\s*\d{1,3}){0,20})\)(?=((?:\s?\(\d[\d\s,;]{0,80}\))*)(.?))")
_BEHIND_ROUND = {"", *".,;:!?\u3002"}
"""Characters that may follow a citation in round brackets. If a word follows, the number is that of a list item."""
_CODE_SPAN = re.compile(r"`[^`\n]{1,1000}`")
_HIDDEN = str.maketrans("[]", "\ufdd0\ufdd1")
_SHOWN = str.maketrans("\ufdd0\ufdd1", "[]")
"""Restores the brackets in code, which ``_HIDDEN`` replaces so that they are not read as citations."""
_BEHIND = re.compile(rf"([.!?\u2026\u3002\uff01\uff1f]+[\"')\u201d\u2019*_]*)((?:[^\S\n]?{MARK})+)")
"""Matches citations that follow the full stop of their sentence."""
_NO_MARK = re.compile(r"(?:sic|\.\.\.|\u2026|[ xX]|emphasis (?:added|mine)|\W*)")
"""Matches the inside of brackets that are never a citation, such as ``[sic]`` or ``[...]``."""


class Cited(Struct, frozen=True):
    """The documents that one answer cites, each once, in order of appearance.

    ``unresolved`` counts the document numbers in the answer that match no document.
    """

    doc_ids: tuple[str, ...]
    unresolved: int = 0


class CitationScores(Struct, frozen=True):
    """Citation precision and counts of one agent.

    Attributes:
        precision: mean over the queries where it is defined, with a 95 % interval over queries.
        queries: number of queries where the precision is defined.
        uncited: number of answers that cite nothing.
        unlabelled: number of answers that cite only documents without a label.
        cited: number of cited documents, counted once per answer.
        labelled: number of cited documents with a label.
        relevant: number of cited documents whose label is at least the lowest relevant label.
        unresolved: number of document numbers in the answers that match no document; they do not change the precision.
    """

    precision: Estimate
    queries: int
    uncited: int
    unlabelled: int
    cited: int
    labelled: int
    relevant: int
    unresolved: int

    @property
    def coverage(self) -> float | None:
        return self.labelled / self.cited if self.cited else None


def cited_documents(
    answers: Iterable[Answer],
    rankings: Mapping[tuple[str, str], Sequence[str]],
    labels: Mapping[str, Mapping[str, int]],
) -> dict[tuple[str, str], Cited]:
    """The documents that each answer cites, by query and agent.

    Answers of the TREC RAG track list the citations of each sentence, as document ids or as indices (from 0) into the
    answer's references. Other answers may have citations in their metadata (``CITATIONS``), for example if ragleague
    called the agent. In all other texts a citation is a mark (``_normalise_marks``): a document's id, or its number
    among the documents that the agent received. Numbers count from 1, or from 0 if that is the agent's ``Habit``. Marks
    in code are ignored. Marks in a list of references at the end are read only if the text has no other marks.

    Args:
        answers: the answers.
        rankings: the documents that the agent received, best first, by query and agent.
        labels: labels by query and document; answers can also cite these documents by id.
    """
    answers = list(answers)
    texts = _texts(answers)
    ids = {key: {*rankings.get(key, ()), *labels.get(key[0], ())} for key in texts}
    habits = _habits(texts, rankings, ids)
    cited = {}
    for answer in answers:
        key = answer.query_id, answer.agent
        if (trec := _trec_citations(answer)) is not None:
            references, sentence_places = trec
            cited[key] = _resolve([place for _, places in sentence_places for place in places], references)
            continue
        ranking, habit = rankings.get(key, ()), habits[answer.agent]
        text = _square_brackets(texts[key], habit)
        marks = _marks("\n".join(text.body)) or _marks("\n".join(text.references))
        cited[key] = _prefer_metadata(answer, ranking, _resolve(_places(marks, ids[key], habit.first), ranking))
    return cited


class CitedSentence(Struct, frozen=True):
    """A sentence of an answer without its citation marks, and the ids of the documents that it cites.

    ``citations`` has each document once, in order; ``None`` stands for a number that matches no document.
    """

    text: str
    citations: tuple[str | None, ...]


def cited_sentences(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[tuple[str, str], tuple[CitedSentence, ...] | None]:
    """The sentences of each answer with their citations, by query and agent, read as in ``cited_documents``.

    A citation after a full stop, or alone on a line, belongs to the sentence before it. In a line that begins with a
    citation, each citation belongs to the sentence after it. Text that claims nothing is left out, see ``claims``.

    Args:
        answers: all answers of each agent, because only together they show how the agent numbers documents.
        rankings: the documents that the agent received, best first, by query and agent.
        known: documents that answers can also cite by id.

    Returns:
        ``None`` for an answer whose citations cannot be assigned to sentences: it cites numbers and has no documents
        that they could refer to, or its citations are only in the metadata (``CITATIONS``) and not in the text.
    """
    answers = list(answers)
    texts = _texts(answers)
    habits = _habits(texts, rankings, dict.fromkeys(texts, known))
    answer_sentences: dict[tuple[str, str], tuple[CitedSentence, ...] | None] = {}
    for answer in answers:
        key, habit = (answer.query_id, answer.agent), habits[answer.agent]
        trec, metadata = _trec_citations(answer), _metadata_citations(answer) or []
        if trec is None:
            documents: Sequence[str] = rankings.get(key) or [place for place in metadata if isinstance(place, str)]
            claims = _claims(_square_brackets(texts[key], habit).body, known, habit.first)
        else:
            documents, claims = trec
        places = [place for _, claim_places in claims for place in claim_places]
        if (metadata and not places) or (not documents and any(isinstance(place, int) for place in places)):
            answer_sentences[key] = None
        else:
            answer_sentences[key] = tuple(CitedSentence(text, _documents(cited, documents)) for text, cited in claims)
    return answer_sentences


def habits_of(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[str, Habit]:
    """How each agent writes citations, by agent; the arguments are the same as for ``cited_sentences``."""
    texts = _texts(answers)
    return _habits(texts, rankings, dict.fromkeys(texts, known))


NOT_SHOWN: Final = "document not shown"
NO_DOCUMENT: Final = "no such document"
_UNKNOWN: Final = "unknown document"


def renumbered(
    answer: Answer, ranking: Sequence[str], known: Collection[str], habit: Habit, shown: Sequence[str]
) -> str:
    """An answer's text with its citations renumbered, from 1, to match the documents ``shown`` next to it.

    A citation of a document that is not shown becomes ``NOT_SHOWN``, and a number that matches no document
    ``NO_DOCUMENT``, or "unknown document" if the agent received no documents. The other arguments are explained in
    ``cited_sentences``.
    """
    number = {doc_id: str(place) for place, doc_id in enumerate(shown, start=1)}

    def names(places: Sequence[int | str], documents: Sequence[str]) -> list[str]:
        missing = NO_DOCUMENT if documents else _UNKNOWN
        cited = _documents(places, documents)
        return list(dict.fromkeys(missing if doc_id is None else number.get(doc_id, NOT_SHOWN) for doc_id in cited))

    if (trec := _trec_citations(answer)) is not None:
        documents, sentence_places = trec
        marked = ((text, names(places, documents)) for text, places in sentence_places)
        return " ".join(f"{text} [{', '.join(cited)}]" if cited else text for text, cited in marked)

    def renumber(bracket: re.Match[str]) -> str:
        marks = _marks(bracket[0])
        cited = names(_places(marks, known, habit.first), ranking)
        return f"[{', '.join(cited)}]" if cited else bracket[0]

    lines = answer.text.split("\n")
    code = {place: lines[place] for place, is_code in enumerate(code_lines(lines)) if is_code}
    prose = "\n".join("" if place in code else line for place, line in enumerate(lines))
    normalised = _normalise_marks(prose).split("\n")
    for place, line in enumerate(normalised):
        squared = _ROUND.sub(_to_square, line) if habit.rounded else line
        normalised[place] = code.get(place, _BRACKETS.sub(renumber, squared).translate(_SHOWN))
    return "\n".join(normalised)


class OtherMarks(Struct, frozen=True):
    """Marks in an agent's answers that look like citations but are not read as citations.

    ``answers`` is the number of answers with such marks, ``example`` the most frequent mark.
    """

    answers: int
    example: str


def other_marks(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[str, OtherMarks]:
    """By agent, marks that look like citations but are not read as citations; arguments as in ``cited_sentences``."""
    texts = _texts(answer for answer in answers if _trec_citations(answer) is None)
    habits = _habits(texts, rankings, dict.fromkeys(texts, known))
    agent_marks: dict[str, list[set[str]]] = {}
    for (query_id, agent), text in texts.items():
        body = "\n".join(_square_brackets(text, habits[agent]).body)
        marks = {
            mark[0]
            for mark in _BRACKETS.finditer(body)
            if not _NO_MARK.fullmatch(mark[1]) and not _places(_marks(mark[0]), known, habits[agent].first)
        }
        marks |= {
            f"({round_[2]})"
            for round_ in _ROUND.finditer(body)
            if _is_mark(round_, rankings.get((query_id, agent), ()))
        }
        if marks:
            agent_marks.setdefault(agent, []).append(marks)
    return {
        agent: OtherMarks(len(sets), Counter(sorted(mark for marks in sets for mark in marks)).most_common(1)[0][0])
        for agent, sets in agent_marks.items()
    }


def _texts(answers: Iterable[Answer]) -> dict[tuple[str, str], Parts]:
    """The body and references of each answer, by query and agent, with citation marks rewritten in square brackets."""
    texts = {}
    for answer in answers:
        trec = _trec_citations(answer) is not None
        parts = Parts((), ()) if trec else parts_of(_DEFINED.sub("", answer.text))
        lines = ("\n".join(part) for part in (parts.body, parts.references))
        texts[answer.query_id, answer.agent] = Parts(*(tuple(_normalise_marks(part).split("\n")) for part in lines))
    return texts


def _square_brackets(text: Parts, habit: Habit) -> Parts:
    """The answer with square brackets around citations, if the agent writes citations in round brackets."""
    if not habit.rounded:
        return text
    return Parts(*(tuple(_ROUND.sub(_to_square, line) for line in lines) for lines in (text.body, text.references)))


class Habit(Struct, frozen=True):
    """How an agent writes citations, derived from all its answers together.

    Attributes:
        first: the number by which the agent cites the first document, 1 or 0. It is 0 if more than half of the answers
            that cite numbers cite 0 and no answer cites the number of documents itself; a 0 in only a few answers is a
            mistake, or code.
        rounded: whether the agent cites in round brackets: at least 90 % of its bracketed numbers are in round
            brackets, are not followed by a word, and match documents.
    """

    first: int = 1
    rounded: bool = False


_ROUNDED = 0.9
"""Smallest share of an agent's bracketed numbers in round brackets for which these are read as citations."""


def _habits(
    texts: Mapping[tuple[str, str], Parts],
    rankings: Mapping[tuple[str, str], Sequence[str]],
    ids: Mapping[tuple[str, str], Collection[str]],
) -> dict[str, Habit]:
    citing: Counter[str] = Counter()
    zeros: Counter[str] = Counter()
    rounded: Counter[str] = Counter()
    others: Counter[str] = Counter()
    too_far: set[str] = set()
    for (query_id, agent), text in texts.items():
        key, body = (query_id, agent), "\n".join(text.body)
        documents = rankings.get(key, ())
        marks = [mark for mark in _marks(body) if mark not in ids[key]]
        numbers = {number for mark in marks for number in _numbers(mark)}
        others[agent] += sum(bool(_numbers(mark)) for mark in marks)
        for bracket in _ROUND.finditer(body):
            (rounded if _is_mark(bracket, documents) else others)[agent] += 1
        citing[agent] += bool(numbers)
        zeros[agent] += 0 in numbers
        if documents and len(documents) in numbers:
            too_far.add(agent)
    return {
        agent: Habit(
            first=0 if 2 * zeros[agent] > citing[agent] and agent not in too_far else 1,
            rounded=rounded[agent] > 1 and rounded[agent] >= _ROUNDED * (rounded[agent] + others[agent]),
        )
        for agent in {agent for _, agent in texts}
    }


def _is_mark(bracket: re.Match[str], documents: Sequence[str]) -> bool:
    """Whether numbers in round brackets can be a citation: no word follows, and all of them match documents."""
    numbers = [int(number) for number in re.findall(r"\d+", bracket[2])]
    return all(1 <= number <= len(documents) for number in numbers) and bracket[4] in _BEHIND_ROUND


def _to_square(bracket: re.Match[str]) -> str:
    return f"{bracket[1]}[{bracket[2]}]" if bracket[4] in _BEHIND_ROUND else bracket[0]


def _claims(body: Sequence[str], ids: Collection[str], first: int) -> list[tuple[str, list[int | str]]]:
    """The claims in an answer's body without citation marks; each with the ids or numbers (from 0) of its citations."""

    def cites(text: str) -> bool:
        return bool(_places(_marks(text), ids, first))

    claims: list[tuple[str, list[int | str]]] = []
    for line, is_one_sentence in claim_lines(body, cites):
        cites_first = cites(line.partition("]")[0] + "]") if line.lstrip().startswith("[") else False
        reordered = line if cites_first or is_one_sentence else _BEHIND.sub(r"\2\1", line)
        for piece in [reordered] if is_one_sentence else sentences(reordered):
            sentence, places = _unmarked(piece, ids, first).translate(_SHOWN), _places(_marks(piece), ids, first)
            if re.search(r"\w", sentence):
                if places or not is_introduction(sentence):
                    claims.append((sentence, places))
            elif claims:
                claims[-1][1].extend(places)
    return claims


def _normalise_marks(text: str) -> str:
    """Rewrite citation marks of all kinds in square brackets, and replace the brackets in code by other characters."""
    text = _CODE_SPAN.sub(_without_brackets, text)
    text = _OTHER_BRACKETS.sub(lambda match: f"[{match[1] or match[2]}]", text)
    text = _PRIVATE.sub(lambda match: "".join(f"[{mark}]" for mark in match[1].split("\ue202")[1:]), text)
    text = _FOOTNOTE.sub(lambda match: match[3] or f"[{match[1]}]{match[2]}", text)
    text = _RAISED.sub(lambda match: f"[{match[1] or match[2] or match[3].translate(_DIGITS)}]", text)
    searches = {mark[1] or mark[3] for inner in _BRACKETS.findall(text) if (mark := _OF_SEARCH.fullmatch(inner))}
    if len(searches) == 1:  # with several searches, a place does not tell which documents are meant
        text = _BRACKETS.sub(_place_of_search, text)
    return text


def _without_brackets(span: re.Match[str]) -> str:
    inner = span[0].strip("`").strip()
    return inner if _BRACKETS.fullmatch(inner) else span[0].translate(_HIDDEN)


def _place_of_search(bracket: re.Match[str]) -> str:
    mark = _OF_SEARCH.fullmatch(bracket[1])
    return bracket[0] if mark is None else f"[{_FROM_ZERO}{mark[2] or mark[4]}]"


def _unmarked(text: str, ids: Collection[str], first: int) -> str:
    """The sentence without its citation marks; other text in brackets stays."""
    uncited = _BRACKETS.sub(lambda bracket: "" if _places(_marks(bracket[0]), ids, first) else bracket[0], text)
    return re.sub(r"\s+([!?,;:]|\.(?!\.))", r"\1", " ".join(re.sub(r"\([\s,;]*\)", "", uncited).split()))


def _places(marks: Iterable[str], ids: Collection[str], first: int) -> list[int | str]:
    """Convert citation marks to document ids or to document numbers from 0; drop all other marks."""
    places: list[int | str] = []
    for mark in marks:
        if mark in ids:
            places.append(mark)
        elif mark.startswith(_FROM_ZERO):
            places.append(int(mark[1:]))
        else:
            places += [number - first for number in _numbers(mark) if number >= first]
    return places


def _numbers(mark: str) -> range:
    """The document numbers in a citation mark, usually one; empty if the mark is not a number."""
    if (match := _NUMBER.fullmatch(mark)) is None:
        return range(0)
    return range(int(match[1]), int(match[2] or match[1]) + 1)


_LARGEST = 999
"""Largest number read as a citation in a sentence; larger ones, such as years, are not."""


def _documents(places: Iterable[int | str], documents: Sequence[str]) -> tuple[str | None, ...]:
    """The ids of the cited documents, each once; ``None`` for each number that matches no document."""
    at = dict(enumerate(documents))
    cited = [place for place in dict.fromkeys(places) if isinstance(place, str) or place <= _LARGEST]
    doc_ids = [place if isinstance(place, str) else at.get(place) for place in cited]
    return tuple(doc_id for place, doc_id in enumerate(doc_ids) if doc_id is None or doc_id not in doc_ids[:place])


def _prefer_metadata(answer: Answer, ranking: Sequence[str], in_text: Cited) -> Cited:
    """The citations in an answer's metadata if it has any, else those in its text.

    If it has both, ``unresolved`` is the larger of the two counts.
    """
    citations = _metadata_citations(answer)
    if citations is None:
        return in_text
    cited = _resolve([place - 1 if isinstance(place, int) else place for place in citations], ranking)
    # Without documents the marks in the text are numbers of the metadata's list, so they are not unresolved.
    unresolved_in_text = in_text.unresolved if ranking else 0
    return Cited(cited.doc_ids, max(cited.unresolved, unresolved_in_text))


def _metadata_citations(answer: Answer) -> list[int | str] | None:
    """The citations in an answer's metadata; ``None`` if it has no valid list."""
    try:
        citations = json.loads(answer.metadata.get(CITATIONS, ""))
    except (ValueError, RecursionError):
        return None
    return citations if isinstance(citations, list) and all(isinstance(each, str | int) for each in citations) else None


def _marks(text: str) -> list[str]:
    """The citation marks in square brackets, with lists such as ``[1, 2]`` split."""
    return [mark.strip() for inner in _BRACKETS.findall(text) for mark in _SEPARATOR.split(_TITLED.sub(r"\1", inner))]


def _trec_citations(answer: Answer) -> tuple[list[str], list[tuple[str, list[int | str]]]] | None:
    """References and sentences of an answer in the format of TREC RAG; ``None`` for answers in other formats."""
    try:
        references = [str(doc_id) for doc_id in json.loads(answer.metadata["references"])]
        return references, [
            (
                str(sentence.get("text", "")),
                [place if isinstance(place, int) else str(place) for place in sentence.get("citations", [])],
            )
            for sentence in json.loads(answer.metadata["sentences"])
        ]
    except (LookupError, ValueError, RecursionError, TypeError, AttributeError):
        return None


def references(answer: Answer) -> list[str]:
    """The document ids that an answer in the format of TREC RAG lists as references; empty for other answers."""
    trec = _trec_citations(answer)
    return [] if trec is None else trec[0]


def _resolve(citations: Iterable[int | str], documents: Sequence[str]) -> Cited:
    doc_ids: dict[str, None] = {}
    unresolved = set()
    for place in citations:
        if isinstance(place, str):
            doc_ids[place] = None
        elif 0 <= place < len(documents):
            doc_ids[documents[place]] = None
        else:
            unresolved.add(place)
    return Cited(tuple(doc_ids), len(unresolved))


def citation_scores(
    cited: Mapping[tuple[str, str], Cited],
    labels: Mapping[str, Mapping[str, int]],
    *,
    relevant: int = 1,
    clusters: Clusters = ALONE,
) -> dict[str, CitationScores]:
    """Compute the citation precision and counts of every agent.

    ``relevant`` is the lowest label that counts as relevant; ``clusters`` are groups of queries that depend on each
    other.
    """
    agents = sorted({agent for _, agent in cited})
    queries = sorted({query_id for query_id, _ in cited})
    counts = np.zeros((len(agents), len(queries), 3))  # cited, labelled, relevant
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), citations in cited.items():
        query_labels = labels.get(query_id, {})
        cited_labels = [query_labels[doc_id] for doc_id in citations.doc_ids if doc_id in query_labels]
        hits = sum(label >= relevant for label in cited_labels)
        counts[rows[agent], columns[query_id]] = len(citations.doc_ids), len(cited_labels), hits
    labelled = counts[..., 1]
    values = np.where(labelled > 0, counts[..., 2] / np.maximum(labelled, 1), np.nan)
    precision = averaged(Scores("citations", tuple(agents), tuple(queries), values, clusters=clusters))
    of_agent = {
        agent: [row for row, name in enumerate(agents) if repeat_of(name)[0] == agent] for agent in precision.agents
    }
    return {
        agent: CitationScores(
            precision.means[agent],
            queries=precision.count(agent),
            uncited=sum(not citations.doc_ids for (_, name), citations in cited.items() if rows[name] in at),
            unlabelled=int(((counts[at, :, 0] > 0) & (counts[at, :, 1] == 0)).sum()),
            cited=int(counts[at, :, 0].sum()),
            labelled=int(counts[at, :, 1].sum()),
            relevant=int(counts[at, :, 2].sum()),
            unresolved=sum(citations.unresolved for (_, name), citations in cited.items() if rows[name] in at),
        )
        for agent, at in of_agent.items()
    }
