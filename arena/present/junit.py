"""JUnit XML, which build servers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from xml.etree import ElementTree

from arena.present.numbers import encodable

Kind: TypeAlias = Literal["", "failure", "error"]


@dataclass(frozen=True, slots=True)
class Case:
    """A test case.

    Attributes:
        name, message, text: what was tested, what came of it in a few words, and in full.
        kind: empty where it passed.
    """

    name: str
    message: str
    text: str
    kind: Kind = ""


def junit(suite: str, cases: Sequence[Case]) -> str:
    """A test suite as a file."""
    counts = {f"{kind}s": str(sum(case.kind == kind for case in cases)) for kind in ("failure", "error")}
    root = ElementTree.Element("testsuite", {"name": suite, "tests": str(len(cases)), **counts})
    for case in cases:
        own = ElementTree.SubElement(root, "testcase", classname=_plain(suite), name=_plain(case.name))
        if case.kind:
            ElementTree.SubElement(own, case.kind, message=_plain(case.message)).text = _plain(case.text)
        else:
            ElementTree.SubElement(own, "system-out").text = _plain(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(one if one == "\n" or one.isprintable() else "�" for one in encodable(text))
