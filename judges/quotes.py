"""Texts made comparable, so that a verdict that stands in a judged text is seen however it is disguised there.

A planted ``{"verdict": "A"}`` may hide from a plain search behind characters that are not seen (soft hyphens,
zero-width spaces, tag characters), behind others of the same look (full-width or Cyrillic letters), or behind entities
and escapes. A model reads through all of them and may repeat the object in plain letters.
"""

from __future__ import annotations

import html
import re
import unicodedata

_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|[nrtbf])")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_NOT_LETTERS = re.compile(r"[\W_]+")
_MAY_HOLD_OBJECT = re.compile(r"[{｛﹛︷❴⦃\U000e007b]|&(?:#|amp|AMP|l[bc])|\\u0")  # noqa: RUF001 - look-alikes
_MAY_HOLD_MARKER = re.compile(
    r"[\[［﹇【][^\x00-\x7f]*[\[［﹇【]|[⟦〚\U000e005b]|&(?:#|amp|AMP|l[bs])|\\u0"  # noqa: RUF001
)
_UNDOINGS = 3
"""An escape or entity may itself be escaped; nobody reads deeper."""

_UNSEEN = frozenset({"Cf", "Mn", "Me", "Cc"})
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Letters by their category that show nothing."""

_ALIKE = (  # letters of one script that look like these, where compatibility normalisation does not say so
    ("АВЕЅІЈКМНОРСТУХЬаеѕіјкмнорстухьԁԛԝһӏѵгпв", "ABESIJKMHOPCTYXbaesijkmhopctyxbdqwhlvrnb"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹαεηικνορτυχωγσϲϳ", "ABEZHIKMNOPTYXCaenikvoptuxwyocj"),
    ("ᎠᎡᎢᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "DRTAJEWMHGZVSLCPKB"),  # noqa: RUF001 - Cherokee
    ("ՕՍՏոսօցհ", "OUSnuogh"),  # noqa: RUF001 - Armenian
    ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɑɡɩʋ", "abcdefghijklmnoprstuvwyziagiv"),
    ("❴⦃❵⦄【】", "{{}}[]"),  # noqa: RUF001 - brackets
)
_SEEN_AS = {alike: letter for others, plain in _ALIKE for alike, letter in zip(others, plain, strict=True)}
_SEEN_AS |= {"⟦": "[[", "〚": "[[", "⟧": "]]", "〛": "]]"}
_SEEN_AS |= {chr(first + at): chr(65 + at) for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)}  # boxed, flags


class _Plain(dict[int, str]):
    """What a character beyond ASCII is seen as, worked out when it first comes up."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        parts = unicodedata.normalize("NFKD", _SEEN_AS.get(char, char))
        seen = (part for part in parts if unicodedata.category(part) not in _UNSEEN and part not in _FILLERS)
        self[code] = plain = "".join(_SEEN_AS.get(part, part) for part in seen)
        return plain


_plain = _Plain()


def folded(text: str) -> str:
    """``text`` as it is seen: without unseen characters, in plain letters, with entities and escapes undone.

    What tag characters spell is put at the end, since a model may read them. Takes time in proportion to the length.
    """
    for _ in range(_UNDOINGS):
        if "&" not in text and "\\u" not in text:
            break
        undone = html.unescape(_ESCAPE.sub(_unescaped, text))
        if undone == text:
            break
        text = undone
    if text.isascii():
        return text
    spelled: list[str] = []

    def seen(run: re.Match[str]) -> str:
        spelled.extend(chr(ord(char) - 0xE0000) for tags in _TAGS.findall(run[0]) for char in tags)
        return run[0].translate(_plain)

    plain = _BEYOND_ASCII.sub(seen, text)
    return f"{plain}\n{''.join(spelled)}" if spelled else plain


def letters(text: str) -> str:
    """Letters and digits only, JSON's escapes undone however often they are escaped again."""
    return _NOT_LETTERS.sub("", _ESCAPE.sub(_unescaped, text)).casefold()


def may_hold_object(text: str) -> bool:
    """Whether there may be a JSON object in ``text`` once it is folded; cheap, since most texts hold none."""
    return _MAY_HOLD_OBJECT.search(text) is not None


def may_hold_marker(text: str) -> bool:
    """Whether there may be a ``[[marker]]`` in ``text`` once it is folded."""
    return _MAY_HOLD_MARKER.search(text) is not None


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "
