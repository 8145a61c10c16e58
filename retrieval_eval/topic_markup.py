"""TREC topics in angle brackets: SGML whose fields need no end, as TREC wrote it for decades, and XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from judges.errors import DataError
from retrieval_eval.data.files import read_lines
from retrieval_eval.data.rows import Row

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_IDS = ("num", "number", "id", "qid")
_TEXTS = ("title", "query", "question", "text", "description", "")
_NAMES = {"desc": "description", "narr": "narrative"}
_LABELS = {"num": "Number:", "title": "Topic:", "description": "Description:", "narrative": "Narrative:"}
"""What SGML topics write before a field's value."""

_START = re.compile(r"<top(?:ic)?[\s>]", re.IGNORECASE)
_SGML_TOPIC = re.compile(r"<top(?:ic)?\b[^>]*>(.*?)</top(?:ic)?>", re.DOTALL | re.IGNORECASE)
_SGML_FIELD = re.compile(r"<([A-Za-z][\w-]*)[^>]*>([^<]*)")
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>|<!DOCTYPE[^>\[]*>", re.IGNORECASE)


def read_markup(path: Path) -> Iterator[Row]:
    """Every topic as a row with ``qid``, ``query`` and its other fields.

    Raises:
        DataError: the file is neither SGML nor XML topics, or declares entities of its own.
    """
    text = "".join(line for _, line in read_lines(path)).replace("\r\n", "\n")
    if "<!ENTITY" in text.upper():
        raise DataError(path, "topics that declare entities are not read")
    lines = [text.count("\n", 0, start.start()) + 1 for start in _START.finditer(text)]
    lower = text.lower()
    topics = _sgml(text) if "<num>" in lower and "</num>" not in lower else _xml(path, text)
    for number, fields in enumerate(topics):
        yield _row(path, lines[number] if number < len(lines) else 1, fields)


def _sgml(text: str) -> Iterator[dict[str, str]]:
    for topic in _SGML_TOPIC.finditer(text):
        fields: dict[str, str] = {}
        for name, value in _SGML_FIELD.findall(topic[1]):
            _add(fields, name, unescape(value))
        yield fields


def _xml(path: Path, text: str) -> Iterator[dict[str, str]]:
    from xml.etree import ElementTree as ET

    body = _XML_HEAD.sub("", text)  # some files have many roots and some have one: here all have one more
    cut = text.count("\n") - body.count("\n")
    try:
        root = ET.fromstring(f"<all>{body}</all>")  # noqa: S314 - entities were refused, expat bounds the rest
    except ET.ParseError as error:
        problem = f"neither TREC's SGML topics (<num> without an end) nor XML: {error}"
        raise DataError(path, problem, line=error.position[0] + cut) from error
    for topic in root.iter():
        if topic.tag.lower() in {"top", "topic"}:
            yield _xml_fields(topic)


def _xml_fields(topic: Element) -> dict[str, str]:
    fields = dict(topic.attrib)
    _add(fields, "", topic.text or "")
    for field in topic:
        _add(fields, field.tag, "".join(field.itertext()))
    return fields


def _add(fields: dict[str, str], tag: str, text: str) -> None:
    """Keep a field on one line; several of one name stand below each other."""
    name = _NAMES.get(tag.lower(), tag.lower())
    value = " ".join(text.split())
    if (label := _LABELS.get(name, "")) and value.lower().startswith(label.lower()):
        value = value[len(label) :].lstrip()
    if value:
        fields[name] = f"{fields[name]}\n{value}" if name in fields else value


def _row(path: Path, line: int, fields: Mapping[str, str]) -> Row:
    ident = next((name for name in _IDS if name in fields), "")
    text = next((name for name in _TEXTS if name in fields), "")
    others = {name: value for name, value in fields.items() if name not in {ident, text, ""}}
    return Row(path, line, {**others, "qid": fields.get(ident, "") if ident else "", "query": fields.get(text, "")})
