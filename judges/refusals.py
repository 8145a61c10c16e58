"""Tells by words alone whether an answer answers, refuses or asks back; the baseline of the stage ``refusals``.

It reads English. On the accepted answers of MTRAG-UN it finds 38 of 38 refusals and 44 of 44 questions back, and takes
none of 141 answers for anything else. A model hears what these patterns do not, such as a refusal in other words.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from judges.types import Task

REFUSALS: Final = Task("refusals")
SAYS_SO: Final = "The documents do not answer the question."
"""The nugget of a question that nothing in the documents answers."""
SAYS_IT: Final = "Does it say that the documents do not answer the question?"
"""The exam question on an answer to such a question."""

Reaction: TypeAlias = Literal["answers", "refuses", "asks back"]

_QUOTES: Final = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2018": "'", "\uff07": "'", "\u00a0": " ", "*": None})
# The patterns are texts, compiled at first use: to compile them takes as long as a tenth of the demo's leaderboard.
_SENTENCE: Final = r"(?<=[.!?])[\"')\]]*\s+|\n+"
_COURTESY: Final = (
    r"(?:(?:i am|i'm|we are|we're)? ?(?:(?:very|so|really|truly) )?sorry|apologies|(?:i|we) apologi[sz]e|unfortunately"
    r"|thanks?|thank you|hello|hi|sure|of course|certainly|great question|good question)\b[^.!?]{0,40}[.!?,]*"
)
_ADVERB: Final = (
    r"(?:(?:also|really|actually|currently|unfortunately|simply|honestly|still|just|specifically|personally),? )*"
)
_NOT: Final = r"(?:do not|don't|does not|doesn't|did not|didn't|cannot|can not|can't|could not|couldn't)"
_INFORMATION: Final = (
    r"(?:information|info|details?|data|knowledge|context|answers?|access|evidence|sources?|documents?|documentation"
    r"|names?|list|figures?|numbers?|mention|record|material|idea|enough|sufficient|anything|that)"
)
_TEXTS: Final = (
    r"(?:documents?|passages?|contexts?|sources?|texts?|articles?|excerpts?|search results?|materials?|information"
    r"|handbook|manual|knowledge base|documentation|reference material|references?)"
)
_SAYING: Final = (
    r"(?:contain|mention|say|provide|include|specify|answer|state|cover|address|discuss|describe|tell|explain|list|name"
    r"|detail|refer to|disclose)"
)
_REFUSING: Final = "|".join(
    (
        rf"\b(?:i|we) {_ADVERB}{_NOT} {_ADVERB}(?:have|possess|hold)\b(?: \S+){{0,4}}? {_INFORMATION}\b",
        rf"\b(?:i|we) {_ADVERB}(?:have no|lack|am missing)(?: \S+){{0,3}}? {_INFORMATION}\b",
        rf"\b(?:i|we) {_ADVERB}(?:do not|don't) {_ADVERB}know\b",
        rf"\bi {_ADVERB}(?:{_NOT}|(?:was not|wasn't|am not) able to|(?:was|am) unable to) {_ADVERB}"
        r"(?:answer|find|locate|see|help|assist|explain|tell|say|determine|confirm|provide|give|offer|do that"
        r"|do this|comment|respond|address|verify|identify|share|retrieve|advise)\b",
        rf"\bwe {_ADVERB}(?:{_NOT}|(?:were|are) (?:not able|unable) to) {_ADVERB}(?:answer|find|determine|say)\b",
        r"\b(?:i am|i'm) (?:\w+ )?(?:unable|not able|not aware|not sure|unsure|uncertain|not certain|unfamiliar"
        r"|not familiar)\b",
        rf"\b{_TEXTS}(?: (?:that )?(?:i|we) (?:have|found|was given|am given|can see)| (?:provided|available|given"
        rf"|shown|retrieved|found|here|at hand|above))* (?:do not|don't|does not|doesn't|did not|didn't) {_ADVERB}"
        rf"{_SAYING}\b",
        rf"\b(?:none|nothing)(?: \S+)? (?:of|in|from) (?:the |these |those |my |our |any )?(?:\S+ )?{_TEXTS}\b",
        rf"\bno(?: \w+){{0,2}}? {_INFORMATION}(?: \S+){{0,8}}? (?:is|are|was|were|be|been) (?:found|available|given"
        r"|provided|present|mentioned)\b",
        r"\bno(?: \w+){0,2}? (?:information|info|details?|data|mention|answer) (?:about|on|regarding|of|in|to)\b",
        r"\bthere (?:is|are|was|were) (?:no|insufficient|not sufficient)(?: \w+){0,2}? (?:information|info|details?"
        r"|mention|answer|context)\b",
        r"\b(?:is not|isn't|are not|aren't|was not|wasn't|were not) (?:\w+ )?(?:mentioned|specified|stated|provided"
        r"|covered|answered|available|given|found|described|discussed|addressed|included|contained|present|disclosed"
        rf"|detailed|documented)(?: \w+)? (?:in|by|from|within|among)(?: \S+){{0,3}}? {_TEXTS}\b",
        r"\b(?:question|this|it) (?:cannot|can not|can't|could not|couldn't) be answered\b",
        r"(?:\bnot|n't) enough (?:\w+ )?(?:information|context)\b|\binsufficient (?:information|context)\b",
        rf"\b(?:answer|information) (?:is not|isn't|was not|wasn't) (?:available|(?:in|part of) (?:the|my|these)"
        rf" (?:\S+ )?{_TEXTS})\b",
        rf"\b{_TEXTS} (?:say|says|said|contain|contains|have|has) nothing\b",
        r"\b(?:unanswerable|not answerable|no answer (?:is|was|can be)|no idea)\b",
        rf"\b(?:beyond|outside|out of) (?:the scope of )?(?:my|our|what i|(?:the|these) (?:\S+ )?{_TEXTS})\b",
    )
)
_ALTHOUGH: Final = r"\W*(?:although|though|even though|while|whereas)\b"
_SHORT: Final = 40
"""In an answer of at most so many words, any sentence may ask back; in a longer one only the last."""
_READ: Final = 600
"""Number of characters of a sentence that are read, so that no text takes long."""
_ASKED: Final = (
    r"(?:mean|means|refer|referring|asking|ask|talking|thinking|looking|interested|want|need|have|specify|clarify"
    r"|elaborate|tell me|let me know|inquiring|curious|rephrase|concerned|prefer|be more specific|narrow|describe"
    r"|give me|provide)"
)
_ASKING_BACK: Final = (
    rf"\b(?:which|what|who|whose|where|when|how)\b.*\b(?:you|your|yours)\b.*\?"
    rf"|\b(?:do|did|are|were|can|could|would|will|might|may) you\b.*\b{_ASKED}\b.*\?"
    rf"|\b(?:please|can you|could you|would you|kindly|you need to|need you to)(?: \w+)? (?:specify|clarify|elaborate"
    r"|rephrase|be more specific|tell me (?:which|what|who|more)|let me know (?:which|what|who)|provide more"
    r"|give me more|give more)\b|\bwhich (?:one|ones|of (?:the|these|those|them|your))\b.*\?"
)
_CLOSING: Final = (
    r"\b(?:anything else|something else (?:i|you)|any (?:other|further|more) questions?|know more"
    r"|like me to|want me to|need me to|shall i|should i|may i help|help you with|assist you with"
    r"|does (?:that|this) (?:help|answer)|further (?:help|information|assistance)|what do you think"
    r"|how (?:can|may|else) i|would you like (?:more|some|any|to)|do you want to)\b"
)


def is_told(item: str) -> bool:
    """Whether a test item asks if an answer says that nothing in the documents answers."""
    return item in (SAYS_SO, SAYS_IT)


def reaction(answer: str) -> Reaction:
    """Whether the words of an answer answer, refuse or ask back.

    An answer refuses if it is empty or opens with a refusal, even if it adds something. It asks back if it ends by
    asking what the question means.

    >>> reaction("Sorry, I don\u2019t have that information.")
    'refuses'
    """
    sentences = [part for part in re.split(_SENTENCE, answer.translate(_QUOTES).casefold().strip()) if part.strip()]
    if not sentences:
        return "refuses"
    sentences = [sentences[0][:_READ], *(part[-_READ:] for part in sentences[1:])]
    last = sentences if len(answer.split()) <= _SHORT else sentences[-1:]
    if any(re.search(_ASKING_BACK, part) and not re.search(_CLOSING, part) for part in last):
        return "asks back"
    opening = next((part for part in sentences if not re.fullmatch(_COURTESY, part.strip())), sentences[0])
    return "refuses" if re.search(_REFUSING, opening) and not re.match(_ALTHOUGH, opening) else "answers"
