"""Formulas and symbols of WordprocessingML as plain characters."""

from __future__ import annotations

from typing import Any

_SYMBOL = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_",  # noqa: RUF001
    0x61: "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",  # noqa: RUF001
    0xA1: "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…",  # noqa: RUF001
    0xBF: "↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",  # noqa: RUF001
    0xF1: "〉∫",
}
"""Characters of the font Symbol from a code on (Adobe's encoding of it, with Greek letters for its Greek)."""
_WINGDINGS = dict(
    zip(b"\x4a\x6c\x6e\x6f\x71\xa7\xa8\xd8\xdf\xe0\xe8\xf0\xfb\xfc\xfd\xfe", "☺●■□❑▪◻➢←→➔⇨✗✓☒☑", strict=True)
)
"""Those that stand for something: check marks, boxes and arrows."""
_PRIVATE = range(0xF000, 0xF100)
"""Where Word puts the characters of symbol fonts."""
_FORMS = {
    "f": "{num}/{den}",
    "sSup": "{e}^{sup}",
    "sSub": "{e}_{sub}",
    "sSubSup": "{e}_{sub}^{sup}",
    "rad": "{deg}√{e}",
}


def symbol(font: str, code: str) -> str | None:
    """The character of a ``w:sym``; ``None`` where only its font knows what it looks like."""
    try:
        number = int(code, 16)
    except ValueError:
        return None
    if font in ("Symbol", "Wingdings"):
        number &= 0xFF
        if font == "Wingdings":
            return _WINGDINGS.get(number)
        return next((row[number - at] for at, row in _SYMBOL.items() if at <= number < at + len(row)), None)
    return None if number in _PRIVATE or not chr(number).isprintable() else chr(number)


def formula(element: Any) -> str:
    """A formula of Office Math on one line: fractions with ``/``, raised and lowered parts with ``^`` and ``_``."""
    inner = [
        (child.tag.rpartition("}")[2], formula(child))
        for child in element
        if isinstance(child.tag, str) and not child.tag.endswith(("Pr", "}del", "}moveFrom"))
    ]
    of = {name: _grouped(text) for name, text in inner}
    kind = element.tag.rpartition("}")[2]
    if kind == "t":
        return element.text or ""
    if kind == "d":
        return f"({', '.join(text for _, text in inner)})"
    if kind == "nary":
        low, high = (f"{mark}{of[name]}" if of.get(name) else "" for mark, name in (("_", "sub"), ("^", "sup")))
        return f"{_sign(element)}{low}{high} {dict(inner).get('e', '')}"
    if kind in _FORMS:
        return _FORMS[kind].format_map({"num": "", "den": "", "e": "", "sub": "", "sup": "", "deg": ""} | of)
    return "".join(text for _, text in inner)


def _grouped(text: str) -> str:
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def _sign(element: Any) -> str:
    """Of a sum, product or integral; Word leaves out the integral's."""
    chosen = next((child for child in element.iter() if str(child.tag).endswith("}chr")), None)
    return "∫" if chosen is None else next(iter(chosen.attrib.values()), "")
