"""What answers cite, and citation precision: the share of the documents cited that are relevant to the query.

For one answer: relevant documents cited / documents cited that have a label, each document once however often it is
cited. Not defined where none of them has a label, and where an answer cites nothing: such queries are counted and in no
mean, for an answer without citations is not one with wrong ones. An agent's precision is the mean over its other ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from judges.types import Answer
from retrieval_eval.scores.claims import INSIDE, MARK, claim_lines, code_lines, is_introduction, parts_of, sentences
from retrieval_eval.stats.arrays import Floats
from retrieval_eval.stats.bootstrap import ALONE, Clusters, units_of
from retrieval_eval.stats.estimate import Estimate
from retrieval_eval.stats.means import mean_estimates

CITATIONS = "citations"
"""Metadata of an answer that says itself what it cites: a JSON list of ids, or of places from 1."""

_BRACKETS = re.compile(rf"\[({INSIDE})\]")
_SEPARATOR = re.compile(r"[,;\uff0c\u3001&]|\band\b|(?<=\d)\s+(?=\d)")
_KIND = r"(?:doc(?:ument)?|source|passage|ref(?:erence)?|citation)s?"
_NUMBER = re.compile(
    rf"(?:{_KIND}[ .:#_-]*|#)?(\d{{1,4}})(?:\s*[-\u2013\u2014]\s*(\d{{1,3}}))?", re.ASCII | re.IGNORECASE
)
"""One document, or those from one to another, by their numbers."""
_TITLED = re.compile(
    rf"({_KIND}[ .#_-]*\d{{1,4}})\s*[:|\u2013\u2014-]\s.{{1,500}}?(?=$|[;,]\s*{_KIND}[ .#_-]*\d)",
    re.ASCII | re.IGNORECASE,
)
"""A number with the document's title."""
_OF_SEARCH = re.compile(r"(\d{1,3}):(\d{1,3})\u2020.*|turn(\d{1,3})(?:file|search|view|news|fetch)(\d{1,3})")
"""A search and a place among its results, which counts from 0: marks of OpenAI's tools."""
_FROM_ZERO = "\ufdd2"
"""Before a place that counts from 0 whatever the agent's habit."""
_OTHER_BRACKETS = re.compile(
    r"[\u3010\uff3b][^\S\n]*(?:(\d[\d \u3000,;\uff0c\u3001\u2013-]*)(?:\u2020[^\u3011\uff3d\n]*)?"
    r"|(\d{1,3}:\d{1,3}\u2020)[^\u3011\uff3d\n]*)[\u3011\uff3d]"
)
"""As OpenAI's assistants write them."""
_PRIVATE = re.compile(r"\ue200(?:file)?cite((?:\ue202turn\d{1,3}[a-z]{1,10}\d{1,3}){1,50})\ue201")
"""As OpenAI's ChatGPT writes them, in characters for private use."""
_AFTER_WORDS = r"(?:(?<=[^\W\d_]{3})|(?<=[.,;:!?)\]\"'\u201d\u2019])|(?<=[^\W\d_]{3}\s))"
"""Where a raised number is a mark and no exponent."""
_RAISED = re.compile(
    _AFTER_WORDS + r"(?:<sup>[^\S\n]*\[?(\d{1,3}(?:[^\S\n]*[,;\u2013-][^\S\n]*\d{1,3}){0,50})\]?[^\S\n]*</sup>"
    r"|\^\[?(\d{1,3}(?:[,;\u2013-]\d{1,3}){0,50})\]?\^|([\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,3}))",
    re.IGNORECASE,
)
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_FOOTNOTE = re.compile(r"\[\^(\d{1,3})\](:?)|(\[\d{1,3}\])\([^\s()]{1,2000}\)")
"""Footnotes and links of Markdown whose text is a number."""
_DEFINED = re.compile(r"^\[\^[^\]\n]+\]:.*$", re.MULTILINE)
"""What a footnote says."""
_ROUND = re.compile(r"(?<=[^\s(:])(\s?)\((\d{1,3}(?:\s*[,;]\s*\d{1,3}){0,20})\)(?=((?:\s?\(\d[\d\s,;]{0,80}\))*)(.?))")
_BEHIND_ROUND = {"", *".,;:!?\u3002"}
"""What follows a citation in round brackets, where a word would follow a number of a list."""
_CODE_SPAN = re.compile(r"`[^`\n]{1,1000}`")
_HIDDEN = str.maketrans("[]", "\ufdd0\ufdd1")
_SHOWN = str.maketrans("\ufdd0\ufdd1", "[]")
"""Brackets in code, which cite nothing."""
_BEHIND = re.compile(rf"([.!?\u2026\u3002\uff01\uff1f]+[\"')\u201d\u2019*_]*)((?:[^\S\n]?{MARK})+)")
"""Citations behind the full stop of the sentence that they belong to."""
_NO_MARK = re.compile(r"(?:sic|\.\.\.|\u2026|[ xX]|emphasis (?:added|mine)|\W*)")
"""What stands in brackets and is nobody's citation."""


class Cited(Struct, frozen=True):
    """What one answer cites.

    Attributes:
        doc_ids: each once, in order of appearance.
        unresolved: numbers that stand for none of the documents known.
    """

    doc_ids: tuple[str, ...]
    unresolved: int = 0


class CitationScores(Struct, frozen=True):
    """One agent's citations.

    Attributes:
        precision: mean over the queries where it is defined, with its 95 % interval over queries.
        queries: how many these are.
        uncited: answers that cite nothing.
        unlabelled: answers that cite only documents without a label.
        cited: documents cited, once for each answer.
        labelled: those of them with a label.
        relevant: those of them whose label is high enough.
        unresolved: numbers cited that stand for no document; in no share.
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
        """Share of the documents cited that have a label."""
        return self.labelled / self.cited if self.cited else None


def cited_documents(
    answers: Iterable[Answer],
    rankings: Mapping[tuple[str, str], Sequence[str]],
    labels: Mapping[str, Mapping[str, int]],
) -> dict[tuple[str, str], Cited]:
    """What answers cite, by query and agent.

    Answers of the TREC RAG track say it with each sentence, as places in their references, which count from 0, or as
    ids. Others may have it as metadata (``CITATIONS``), as agents that we ask do. In other texts citations are marks
    (``_usual``): a document's id, or its place in what the agent was given. Places count from 1, and from 0 as
    ``Habit`` says. Marks in code are none, and those of a list of references at the end count only without others.

    Args:
        answers: the answers.
        rankings: by query and agent the documents that it was given, best first.
        labels: by query and document; these documents can be cited by their ids, too.
    """
    each = list(answers)
    texts = {(own.query_id, own.agent): _Text.of(own) for own in each}
    ids = {key: {*rankings.get(key, ()), *labels.get(key[0], ())} for key in texts}
    habits = _habits(texts, rankings, ids)
    found = {}
    for own in each:
        key = own.query_id, own.agent
        if (told := _trec_citations(own)) is not None:
            references, of_sentences = told
            found[key] = _resolved([place for _, places in of_sentences for place in places], references)
            continue
        ranking, read = rankings.get(key, ()), texts[key].read(habits[own.agent])
        marks = _marks("\n".join(read.body)) or _marks("\n".join(read.references))
        found[key] = _cited_as_told(own, ranking, _resolved(_places(marks, ids[key], habits[own.agent].first), ranking))
    return found


class CitedSentence(Struct, frozen=True):
    """A sentence of an answer.

    Attributes:
        text: without its marks.
        citations: the documents that it cites, each once and in order; ``None`` for each number that stands for none.
    """

    text: str
    citations: tuple[str | None, ...]


def cited_sentences(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[tuple[str, str], tuple[CitedSentence, ...] | None]:
    """The sentences of answers with what each cites, by query and agent, read as ``cited_documents`` reads them.

    A citation behind a full stop, or on a line of its own, belongs to the sentence before it. In a line that begins
    with one, citations stand before their sentences. What is no claim is no sentence, see ``claims``.

    Args:
        answers: all that an agent gave, for how it cites is seen from all together.
        rankings: by query and agent the documents that it was given, best first.
        known: documents that can be cited by their ids, too.

    Returns:
        ``None`` for an answer of which nobody knows what its sentences cite: it has numbers, and no documents that they
        could stand for; or its citations are told beside the text (``CITATIONS``) and not in it.
    """
    each = list(answers)
    texts = {(own.query_id, own.agent): _Text.of(own) for own in each}
    habits = _habits(texts, rankings, dict.fromkeys(texts, known))
    found: dict[tuple[str, str], tuple[CitedSentence, ...] | None] = {}
    for own in each:
        key = own.query_id, own.agent
        trec, told = _trec_citations(own), _told(own) or []
        if trec is None:
            documents: Sequence[str] = rankings.get(key) or [place for place in told if isinstance(place, str)]
            parts = _parts(texts[key].read(habits[own.agent]).body, known, habits[own.agent].first)
        else:
            documents, parts = trec
        places = [place for _, cited in parts for place in cited]
        if (told and not places) or (not documents and any(isinstance(place, int) for place in places)):
            found[key] = None
        else:
            found[key] = tuple(CitedSentence(text, _documents(cited, documents)) for text, cited in parts)
    return found


def habits_of(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[str, Habit]:
    """How each agent cites; arguments as of ``cited_sentences``."""
    texts = {(own.query_id, own.agent): _Text.of(own) for own in answers}
    return _habits(texts, rankings, dict.fromkeys(texts, known))


NOT_SHOWN: Final = "document not shown"
NO_DOCUMENT: Final = "no such document"
_UNKNOWN: Final = "unknown document"


def renumbered(
    answer: Answer, ranking: Sequence[str], known: Collection[str], habit: Habit, shown: Sequence[str]
) -> str:
    """An answer's text with its citations by the places of the documents that somebody sees beside it, from 1.

    Args:
        answer: of the agent.
        ranking: documents that it was given, best first.
        known: documents that can be cited by their ids, too.
        habit: of the agent.
        shown: documents in the order shown. Others are named as such, and so are numbers that stand for none; of an
            agent without documents nobody knows what they stand for.
    """
    number = {doc_id: str(place) for place, doc_id in enumerate(shown, start=1)}

    def names(places: Sequence[int | str], documents: Sequence[str]) -> list[str]:
        missing = NO_DOCUMENT if documents else _UNKNOWN
        cited = _documents(places, documents)
        return list(dict.fromkeys(missing if own is None else number.get(own, NOT_SHOWN) for own in cited))

    if (trec := _trec_citations(answer)) is not None:
        documents, sentences_ = trec
        marked = ((text, names(places, documents)) for text, places in sentences_)
        return " ".join(f"{text} [{', '.join(cited)}]" if cited else text for text, cited in marked)

    def renamed(found: re.Match[str]) -> str:
        marks = _marks(found[0])
        cited = names(_places(marks, known, habit.first), ranking)
        return f"[{', '.join(cited)}]" if cited else found[0]

    lines = answer.text.split("\n")
    code = {place: lines[place] for place, is_code in enumerate(code_lines(lines)) if is_code}
    usual = _usual("\n".join("" if place in code else line for place, line in enumerate(lines))).split("\n")
    for place, line in enumerate(usual):
        squared = _ROUND.sub(_squared, line) if habit.rounded else line
        usual[place] = code.get(place, _BRACKETS.sub(renamed, squared).translate(_SHOWN))
    return "\n".join(usual)


class OtherMarks(Struct, frozen=True):
    """Marks of an agent that are read as no citations.

    Attributes:
        answers: how many have any.
        example: the one that most of them have.
    """

    answers: int
    example: str


def other_marks(
    answers: Iterable[Answer], rankings: Mapping[tuple[str, str], Sequence[str]], known: Collection[str]
) -> dict[str, OtherMarks]:
    """What looks like citations and is not read as any, by agent; arguments as of ``cited_sentences``."""
    each = [own for own in answers if _trec_citations(own) is None]
    texts = {(own.query_id, own.agent): _Text.of(own) for own in each}
    habits = _habits(texts, rankings, dict.fromkeys(texts, known))
    found: dict[str, list[set[str]]] = {}
    for (query_id, agent), text in texts.items():
        body = "\n".join(text.read(habits[agent]).body)
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
            found.setdefault(agent, []).append(marks)
    return {
        agent: OtherMarks(len(own), min(Counter(mark for marks in own for mark in marks).most_common(), key=_most)[0])
        for agent, own in found.items()
    }


def _most(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


class _Text(Struct, frozen=True):
    """An answer's lines with citations of all kinds in square brackets.

    Attributes:
        body, references: as of ``Parts``.
    """

    body: tuple[str, ...]
    references: tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: Answer) -> _Text:
        if _trec_citations(answer) is not None:
            return cls(())
        parts = parts_of(_DEFINED.sub("", answer.text))
        body, references = (_usual("\n".join(lines)).split("\n") for lines in (parts.body, parts.references))
        return cls(tuple(body), tuple(references))

    def read(self, habit: Habit) -> _Text:
        """The same with numbers in round brackets in square ones, where these are citations."""
        if not habit.rounded:
            return self
        turned = (tuple(_ROUND.sub(_squared, line) for line in lines) for lines in (self.body, self.references))
        return _Text(*turned)


class Habit(Struct, frozen=True):
    """How an agent cites, as all of its answers together show.

    Attributes:
        first: the number that it counts from: 0 if more than half of its answers that cite by numbers cite 0, and no
            number of any is by one greater than the last document's. One 0 among many is a slip, or code.
        rounded: whether it cites in round brackets: hardly any number of it is in other ones, or in round ones where no
            citation stands, before a word or of no document.
    """

    first: int = 1
    rounded: bool = False


_ROUNDED = 0.9
"""Share of an agent's numbers in brackets that must be citations in round ones for these to be read."""


def _habits(
    texts: Mapping[tuple[str, str], _Text],
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
        for found in _ROUND.finditer(body):
            (rounded if _is_mark(found, documents) else others)[agent] += 1
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


def _is_mark(found: re.Match[str], documents: Sequence[str]) -> bool:
    """Whether a number in round brackets may be a citation: at the end of something, and of documents."""
    numbers = [int(number) for number in re.findall(r"\d+", found[2])]
    return all(1 <= number <= len(documents) for number in numbers) and found[4] in _BEHIND_ROUND


def _squared(found: re.Match[str]) -> str:
    return f"{found[1]}[{found[2]}]" if found[4] in _BEHIND_ROUND else found[0]


def _parts(body: Sequence[str], ids: Collection[str], first: int) -> list[tuple[str, list[int | str]]]:
    """The claims of an answer without their marks, each with what it cites."""

    def cites(text: str) -> bool:
        return bool(_places(_marks(text), ids, first))

    parts: list[tuple[str, list[int | str]]] = []
    for line, is_one in claim_lines(body, cites):
        before = cites(line.partition("]")[0] + "]") if line.lstrip().startswith("[") else False
        moved = line if before or is_one else _BEHIND.sub(r"\2\1", line)
        for piece in [moved] if is_one else sentences(moved):
            said, places = _unmarked(piece, ids, first).translate(_SHOWN), _places(_marks(piece), ids, first)
            if re.search(r"\w", said):
                if places or not is_introduction(said):
                    parts.append((said, places))
            elif parts:
                parts[-1][1].extend(places)
    return parts


def _usual(text: str) -> str:
    """The text with citations of all kinds in square brackets, and without brackets in code."""
    text = _CODE_SPAN.sub(_without_brackets, text)
    text = _OTHER_BRACKETS.sub(lambda found: f"[{found[1] or found[2]}]", text)
    text = _PRIVATE.sub(lambda found: "".join(f"[{mark}]" for mark in found[1].split("\ue202")[1:]), text)
    text = _FOOTNOTE.sub(lambda found: found[3] or f"[{found[1]}]{found[2]}", text)
    text = _RAISED.sub(lambda found: f"[{found[1] or found[2] or found[3].translate(_DIGITS)}]", text)
    searches = {mark[1] or mark[3] for inner in _BRACKETS.findall(text) if (mark := _OF_SEARCH.fullmatch(inner))}
    if len(searches) == 1:  # of several nobody knows which documents each had
        text = _BRACKETS.sub(_place_of_search, text)
    return text


def _without_brackets(found: re.Match[str]) -> str:
    inner = found[0].strip("`").strip()
    return inner if _BRACKETS.fullmatch(inner) else found[0].translate(_HIDDEN)


def _place_of_search(found: re.Match[str]) -> str:
    mark = _OF_SEARCH.fullmatch(found[1])
    return found[0] if mark is None else f"[{_FROM_ZERO}{mark[2] or mark[4]}]"


def _unmarked(text: str, ids: Collection[str], first: int) -> str:
    """A sentence without the brackets that cite, and only these."""
    kept = _BRACKETS.sub(lambda found: "" if _places(_marks(found[0]), ids, first) else found[0], text)
    return re.sub(r"\s+([!?,;:]|\.(?!\.))", r"\1", " ".join(re.sub(r"\([\s,;]*\)", "", kept).split()))


def _places(marks: Iterable[str], ids: Collection[str], first: int) -> list[int | str]:
    """Marks in brackets as ids, and as places from 0; others are no citations."""
    found: list[int | str] = []
    for mark in marks:
        if mark in ids:
            found.append(mark)
        elif mark.startswith(_FROM_ZERO):
            found.append(int(mark[1:]))
        else:
            found += [number - first for number in _numbers(mark) if number >= first]
    return found


def _numbers(mark: str) -> range:
    """The numbers that a mark names, one as a rule."""
    if (found := _NUMBER.fullmatch(mark)) is None:
        return range(0)
    return range(int(found[1]), int(found[2] or found[1]) + 1)


_LARGEST = 999
"""Numbers above it, such as years, cite nothing in a sentence."""


def _documents(places: Iterable[int | str], documents: Sequence[str]) -> tuple[str | None, ...]:
    """Each document once, and ``None`` for each number that stands for none."""
    at = dict(enumerate(documents))
    cited = [place for place in dict.fromkeys(places) if isinstance(place, str) or place <= _LARGEST]
    found = [place if isinstance(place, str) else at.get(place) for place in cited]
    return tuple(own for place, own in enumerate(found) if own is None or own not in found[:place])


def _cited_as_told(answer: Answer, ranking: Sequence[str], in_text: Cited) -> Cited:
    """What an answer's metadata says; else what stands in its text, which may count otherwise."""
    told = _told(answer)
    if told is None:
        return in_text
    cited = _resolved([each - 1 if isinstance(each, int) else each for each in told], ranking)
    lost = in_text.unresolved if ranking else 0  # marks of an agent that names no documents count its citations
    return Cited(cited.doc_ids, max(cited.unresolved, lost))


def _told(answer: Answer) -> list[int | str] | None:
    """What an answer's metadata says that it cites."""
    try:
        told = json.loads(answer.metadata.get(CITATIONS, ""))
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, list) and all(isinstance(each, str | int) for each in told) else None


def _marks(text: str) -> list[str]:
    """What stands in square brackets, one by one."""
    return [mark.strip() for inner in _BRACKETS.findall(text) for mark in _SEPARATOR.split(_TITLED.sub(r"\1", inner))]


def _trec_citations(answer: Answer) -> tuple[list[str], list[tuple[str, list[int | str]]]] | None:
    """References and sentences of a TREC RAG answer; ``None`` of another one, which may have columns of these names."""
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
    """The documents that a TREC RAG answer refers to; none of another one."""
    told = _trec_citations(answer)
    return [] if told is None else told[0]


def _resolved(citations: Iterable[int | str], documents: Sequence[str]) -> Cited:
    found: dict[str, None] = {}
    unresolved = set()
    for each in citations:
        if isinstance(each, str):
            found[each] = None
        elif 0 <= each < len(documents):
            found[documents[each]] = None
        else:
            unresolved.add(each)
    return Cited(tuple(found), len(unresolved))


def citation_scores(
    cited: Mapping[tuple[str, str], Cited],
    labels: Mapping[str, Mapping[str, int]],
    *,
    relevant: int = 1,
    clusters: Clusters = ALONE,
) -> dict[str, CitationScores]:
    """Score every agent.

    Args:
        cited: see ``cited_documents``.
        labels: relevance by query and document.
        relevant: the lowest label that counts as relevant.
        clusters: of queries that depend on each other.
    """
    agents = sorted({agent for _, agent in cited})
    queries = sorted({query_id for query_id, _ in cited})
    counts = np.zeros((len(agents), len(queries), 3))  # cited, labelled, relevant
    rows, columns = ({name: at for at, name in enumerate(names)} for names in (agents, queries))
    for (query_id, agent), own in cited.items():
        given = [labels[query_id][doc_id] for doc_id in own.doc_ids if doc_id in labels.get(query_id, {})]
        hits = sum(label >= relevant for label in given)
        counts[rows[agent], columns[query_id]] = len(own.doc_ids), len(given), hits
    precision = _precisions(counts, units_of(queries, clusters))
    return {
        agent: CitationScores(
            precision[at],
            queries=int((counts[at, :, 1] > 0).sum()),
            uncited=sum(not own.doc_ids for (_, name), own in cited.items() if name == agent),
            unlabelled=int(((counts[at, :, 0] > 0) & (counts[at, :, 1] == 0)).sum()),
            cited=int(counts[at, :, 0].sum()),
            labelled=int(counts[at, :, 1].sum()),
            relevant=int(counts[at, :, 2].sum()),
            unresolved=sum(own.unresolved for (_, name), own in cited.items() if name == agent),
        )
        for agent, at in rows.items()
    }


def _precisions(counts: Floats, unit: NDArray[np.int64]) -> list[Estimate]:
    """Each agent's mean over its own defined queries; counts are (agents, queries, 3)."""
    labelled = counts[..., 1]
    return list(mean_estimates(np.where(labelled > 0, counts[..., 2] / np.maximum(labelled, 1), np.nan), unit))
