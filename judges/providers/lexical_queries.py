"""Questions made of a text's own sentences by templates: a baseline without a model, and no replacement for one.

What comes out is grammatical more often than not, and asks about single sentences in their own words, which retrieval
by words finds easier than what people ask. Good for trying a set-up; a test set needs a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

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
    found = {_NOT_LETTERS.sub("", question).casefold(): question for question in _questions(text)}
    if len(found) >= most:
        return _spread(list(found.values()), most)
    for phrase in _phrases(text):
        found.setdefault(_NOT_LETTERS.sub("", phrase).casefold(), f"What does one need to know about {phrase}?")
    return list(found.values())[:most]


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


def _spread(found: Sequence[str], most: int) -> list[str]:
    if len(found) <= most:
        return list(found)
    return [found[number * len(found) // most] for number in range(most)]
