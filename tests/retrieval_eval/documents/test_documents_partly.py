"""What is missing of a PDF, a page of HTML or a Markdown file, and what is not entered of a folder, is said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import FileNote, SourceDocument
from tests.support.document_files import write_docx, write_pdf, write_word


def texts_and_notes(path: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The paragraphs of a file, and what is said of it."""
    read = list(read_documents([path]))
    texts = [
        text for each in read if isinstance(each, SourceDocument) for part in each.parts for text in part.paragraphs
    ]
    return texts, [(each.outcome, each.reason) for each in read if isinstance(each, FileNote)]


def test_a_pdf_with_wrong_offsets_is_read_and_that_is_said(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["First.", "Second."])
    path.write_bytes(path.read_bytes().replace(b"\n%", b"\n% a line more that moves everything behind it\n%", 1))
    assert texts_and_notes(path) == (["First.", "Second."], [("note", "recovered: wrong cross-reference offsets")])


def with_picture(page: Any) -> None:
    from pypdf.generic import DecodedStreamObject, NameObject

    content = DecodedStreamObject()
    content.set_data(b"q 100 0 0 100 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x00 EI Q")
    page[NameObject("/Contents")] = content


def with_form(page: Any) -> None:
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

    field = {"/FT": NameObject("/Tx"), "/T": TextStringObject("name"), "/V": TextStringObject("Ann")}
    box = {"/Type": NameObject("/Annot"), "/Subtype": NameObject("/FreeText"), "/Contents": TextStringObject("Look!")}
    names = [DictionaryObject({NameObject(key): value for key, value in each.items()}) for each in (field, box)]
    fields = ArrayObject([page.pdf._add_object(names[0])])
    page[NameObject("/Annots")] = ArrayObject(names[1:])
    page.pdf._root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): fields})


def test_pages_that_are_scanned_and_blank_ones_are_told_apart(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(write_pdf(tmp_path / "whole", ["Text.", "", "", "", "Text.", ""])))
    for number in (1, 2, 5):
        with_picture(writer.pages[number])
    writer.write(tmp_path / "a.pdf")
    _, said = texts_and_notes(tmp_path / "a.pdf")
    assert said == [("partly read", "pages 2-3, 6 show pictures and no text; scanned?")]


def test_text_beside_the_pages_of_a_pdf_is_said_to_be_missing(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(write_pdf(tmp_path / "whole", ["Text."])))
    with_form(writer.pages[0])
    writer.add_attachment("table.csv", b"a,b")
    writer.write(tmp_path / "a.pdf")
    said = "1 filled form field, 1 text annotation, 1 attached file not read"
    assert texts_and_notes(tmp_path / "a.pdf") == (["Text."], [("partly read", said)])


FILES: dict[str, tuple[str, bytes, list[str], list[tuple[str, str]]]] = {
    "text behind the end of a page": ("a.html", b"<p>one</p></body></html><p>two", ["one", "two"], []),
    "details, tables, text areas": (
        "a.html",
        b"<details><summary>more</summary>hidden</details><table><tr><td>a<td>b</table><textarea>c</textarea>",
        ["more", "hidden", "a | b", "c"],
        [],
    ),
    "formulas and drawings": (
        "a.html",
        b"<p>one<math><mi>x</mi></math><svg><title>t</title></svg><svg><text>y</text></svg><svg><text>z</text></svg>",
        ["one"],
        [("partly read", "1 MathML formula, 2 SVG texts not read")],
    ),
    "what only some browsers show": (
        "a.html",
        b"<p>one</p><noscript>Turn scripts on.</noscript><noscript><img></noscript><template><p>two</p></template>",
        ["one"],
        [("note", "1 <noscript> element, 1 <template> element left out")],
    ),
    "an encoding that cannot be": ("a.html", b"<meta charset=utf-16><p>one", ["one"], []),
    "NUL": (
        "a.html",
        b"<meta charset=utf-8><p>o\0ne",
        [],
        [("skipped", "holds NUL bytes; is it a text file?")],
    ),
    "characters lost before": (
        "a.txt",
        "caf\ufffd".encode(),
        ["caf\ufffd"],
        [("partly read", "1 character lost in it (U+FFFD)")],
    ),
    "HTML in Markdown": (
        "a.md",
        b"<h2>Why</h2>\n\n<details>\n<summary>x</summary>\nhidden\n</details>\n\n- a<br>b\n- <p>c</p>\n\n<!-- no -->",
        ["x", "hidden", "a b\nc"],
        [],
    ),
    "deep Markdown": (
        "a.md",
        b"one\n\n" + b"> " * 200 + b"two",
        ["one"],
        [("partly read", "what is nested deeper than 200 levels is not read")],
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_text_is_read_or_said_to_be_missing(tmp_path: Path, case: str) -> None:
    name, content, texts, said = FILES[case]
    (tmp_path / name).write_bytes(content)
    assert texts_and_notes(tmp_path / name) == (texts, said)


def test_links_to_folders_are_skipped_and_hidden_ones_named(tmp_path: Path, cli: Any) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for name in (".git", "b"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.md").write_text("Text.")
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    link = "is a link to a folder; name that folder to have it read"
    assert list(read_documents([folder]))[1:] == [
        FileNote(".git", "hidden, not read", "note"),
        FileNote("link", link),
        FileNote("loop", link),
    ]
    done = cli("documents", folder)
    assert done.status == 3
    assert done.err.splitlines() == [
        "note: .git: hidden, not read",
        f"skipped: link: {link}",
        f"skipped: loop: {link}",
    ]


def test_hidden_files_of_one_name_in_two_folders_are_no_clash(tmp_path: Path, cli: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text(f"Text {name}.")
        (tmp_path / name / ".DS_Store").touch()
    done = cli("documents", tmp_path / "one", tmp_path / "two")
    assert (done.status, done.err.splitlines()) == (0, ["note: .DS_Store and .DS_Store: hidden, not read"])


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    assert list(read_documents([tmp_path])) == [FileNote("closed", "cannot be read: Permission denied")]


def test_a_document_read_in_part_is_one_line_and_an_entry_of_the_json(tmp_path: Path, cli: Any) -> None:
    write_docx(tmp_path / "whole.docx")
    write_word(tmp_path / "report.docx", "<w:p><w:r><w:t>Text.</w:t><w:object/></w:r></w:p>")
    done = cli("documents", tmp_path)
    assert (done.status, done.err) == (3, "partly read: report.docx: 1 embedded object not read\n")
    said = json.loads(cli("documents", tmp_path, "--json").out)["skipped"]
    assert said == [{"source": "report.docx", "reason": "1 embedded object not read", "outcome": "partly read"}]
