"""Documents of every format are read; what is wrong with files or missing of them is said, and stops no others."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judges.errors import InputError, MissingExtraError
from retrieval_eval.documents import read
from retrieval_eval.documents.read import files_of, read_documents
from retrieval_eval.documents.types import DocumentPart, FileNote, Limits, SourceDocument
from tests.support.document_files import (
    write_docx,
    write_docx_bomb,
    write_laughing_docx,
    write_looping_pdf,
    write_pdf,
    write_slow_pdf,
    write_word,
)


def document(path: Path) -> SourceDocument:
    (found,) = read_documents([path])
    assert isinstance(found, SourceDocument), found
    return found


def test_a_pdf_gives_its_pages_with_their_numbers(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "guide.pdf", ["One line\nand its end.", "", "Größe: 3 µm"], title="A  Guide")
    parts = (DocumentPart("", 1, ("One line and its end.",)), DocumentPart("", 3, ("Größe: 3 µm",)))
    assert document(path) == SourceDocument("guide.pdf", "A Guide", parts)


def test_a_pdf_without_a_title_is_called_by_its_file(tmp_path: Path) -> None:
    assert document(write_pdf(tmp_path / "guide v2.pdf", ["Text."])).title == "guide v2"


def test_a_docx_gives_its_sections_with_lists_and_tables_whole(tmp_path: Path) -> None:
    sections = (
        DocumentPart("", None, ("An introduction.",)),
        DocumentPart("Setting up", None, ("Do this:\nSwitch on.\nWait.", "both\nleft | right")),
        DocumentPart("Faults", None, ("Call us.",)),
    )
    assert document(write_docx(tmp_path / "guide.docx")) == SourceDocument("guide.docx", "The Guide", sections)


def test_a_page_of_html_gives_what_a_reader_sees(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        """<!doctype html><title>In the  bar</title><script>var x = "<p>no</p>"</script><nav>Home | About</nav>
        <h1>Sensors</h1><p>They <b>mea</b>sure
        things.<br>Always.<p>Such as:<ul><li>heat
        <li>light <ul><li>red</ul></ul><h2>Prices &amp; more</h2>
        <table><tr><th>part<th>price<tr><td><p>A</p><td>3 €</table><pre>two
  lines</pre><div style="display:none"></div><footer>Imprint</footer>"""
    )
    sections = (
        DocumentPart("", None, ("They measure things. Always.", "Such as:\nheat\nlight\nred")),
        DocumentPart("Prices & more", None, ("part | price\nA | 3 €", "two\nlines")),
    )
    assert document(path) == SourceDocument("page.html", "Sensors", sections)


def test_html_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    pages = {
        "latin": ("<meta charset='iso-8859-1'><p>Gr\u00f6\u00dfe".encode("latin-1"), "Größe"),
        "equiv": ("<meta http-equiv=x content='text/html; charset=windows-1252'><p>\u20ac".encode("cp1252"), "€"),
        "plain": ("<p>Größe".encode(), "Größe"),
        "utf16": ("<p>Größe".encode("utf-16"), "Größe"),
        "bom": (b"\xef\xbb\xbf<meta charset=latin1><p>Gr\xc3\xb6\xc3\x9fe", "Größe"),
    }
    for name, (content, _) in pages.items():
        (tmp_path / f"{name}.htm").write_bytes(content)
    read = [found for found in read_documents([tmp_path]) if isinstance(found, SourceDocument)]
    assert {found.title: found.parts[0].paragraphs for found in read} == {
        name: (text,) for name, (_, text) in pages.items()
    }


def test_markdown_and_text_give_their_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Page\n\nOne\nline.\n\n## Part\n\n- a\n- b\n")
    (tmp_path / "b.txt").write_bytes("\ufeffFirst\r\nline.\r\n \r\n\r\nSecond.\f Third.".encode())
    assert list(read_documents([tmp_path])) == [
        SourceDocument("a.md", "Page", (DocumentPart("", None, ("One line.",)), DocumentPart("Part", None, ("a\nb",)))),
        SourceDocument("b.txt", "b", (DocumentPart("", None, ("First\nline.", "Second.", "Third.")),)),
    ]


def test_a_long_outline_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("\n".join("  " * level + f"- level {level}" for level in range(60)))
    assert document(tmp_path / "a.md").parts[0].paragraphs[0].endswith("level 59")


WRONG: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "empty": ("a.md", lambda path: path.touch(), "is empty"),
    "blank": ("a.txt", lambda path: path.write_text(" \n\n"), "has no text"),
    "latin": ("a.txt", lambda path: path.write_bytes(b"caf\xe9"), "is not UTF-8 text (byte 3); save it as UTF-8"),
    "binary": ("a.txt", lambda path: path.write_bytes(b"a\0b"), "holds NUL bytes; is it a text file?"),
    "lying": (
        "a.html",
        lambda path: path.write_bytes(b"<meta charset=utf-8><p>\xe9"),
        "is not utf-8, the encoding that it declares (byte 23)",
    ),
    "unheard": (
        "a.html",
        lambda path: path.write_bytes(b"<meta charset=klingon><p>x"),
        "declares the encoding 'klingon', which is not known",
    ),
    "deep": ("a.html", lambda path: path.write_text("<div>" * 100_000 + "x"), "its elements are nested too deeply"),
    "scanned": ("a.pdf", lambda path: write_pdf(path, ["", ""]), "has no text; is it scanned?"),
    "locked": (
        "a.pdf",
        lambda path: write_pdf(path, ["secret"], password="sesame"),
        "is encrypted; save it without a password",
    ),
    "looping": ("a.pdf", write_looping_pdf, "is broken: PdfReadError: Detected cyclic page references."),
    "cut off": (
        "a.pdf",
        lambda path: path.write_bytes(write_pdf(path, ["text"] * 3).read_bytes()[:700]),
        "is broken: Pdf",
    ),
    "no pdf": ("a.pdf", lambda path: path.write_bytes(b"%PDF-1.7\n\0\xff"), "is broken: PdfStreamError: "),
    "no docx": ("a.docx", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0"), "is not a DOCX file, or is damaged; "),
    "laughing": ("a.docx", write_laughing_docx, "is broken: XMLSyntaxError: "),
}


def test_files_that_cannot_be_read_are_skipped_each_with_its_reason(tmp_path: Path) -> None:
    for case, (name, make, _) in WRONG.items():
        make(tmp_path / f"{case}.{name}")
    read = {found.source: found for found in read_documents([tmp_path])}
    for case, (name, _, said) in WRONG.items():
        found = read[f"{case}.{name}"]
        assert isinstance(found, FileNote), case
        assert found.reason.startswith(said), case


def test_a_pdf_that_wants_only_the_empty_password_is_read(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(write_pdf(tmp_path / "open.pdf", ["Not so secret."])))
    writer.encrypt("", owner_password="owner", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    assert document(tmp_path / "a.pdf").parts[0].paragraphs == ("Not so secret.",)


def test_files_larger_than_the_limits_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("word " * 300_000)
    (tmp_path / "dense.txt").write_text("word " * 150_000)
    write_docx_bomb(tmp_path / "bomb.docx", 5_000_000)
    write_pdf(tmp_path / "long.pdf", ["a"] * 4)
    read = read_documents([tmp_path], Limits(megabytes=1, pages=3))
    assert {found.source: found.reason for found in read if isinstance(found, FileNote)} == {
        "big.txt": "has 1 MB, more than 1",
        "bomb.docx": "unpacks to 5 MB",
        "dense.txt": "has more than 100000 characters of text",
        "long.pdf": "has 4 pages, more than 3",
    }


def test_a_file_that_takes_too_long_is_ended_and_the_next_one_is_read(tmp_path: Path) -> None:
    write_slow_pdf(tmp_path / "a.pdf")
    (tmp_path / "b.txt").write_text("Text.")
    started = time.monotonic()
    slow, next_one = read_documents([tmp_path], Limits(seconds=2))
    assert slow == FileNote("a.pdf", "took longer than 2 s")
    assert isinstance(next_one, SourceDocument)
    assert time.monotonic() - started < 30


def test_a_file_that_wants_too_much_memory_takes_nothing_else_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>x" * 3_000_000)
    (tmp_path / "b.txt").write_text("Text.")
    greedy, next_one = read_documents([tmp_path], Limits(memory_megabytes=300))
    assert isinstance(greedy, FileNote)
    assert isinstance(next_one, SourceDocument)


def test_a_file_is_named_by_its_path_below_the_folder_and_hidden_ones_are_only_named(tmp_path: Path) -> None:
    for name in ("b/two.md", "a.md", ".git/x.md", "~$a.docx", "b/.x.md", "b/image.PNG", "B.MD"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("Text.")
    named, hidden = ["B.MD", "a.md", "b/image.PNG", "b/two.md"], [".git", "b/.x.md", "~$a.docx"]
    assert [file.source for file in files_of([tmp_path])] == named + hidden
    read = list(read_documents([tmp_path]))
    assert [found.source for found in read[:3]] == ["B.MD", "a.md", "b/two.md"]
    assert read[3:] == [FileNote(name, "hidden, not read", "note") for name in hidden]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("A secret.")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "inside.md").write_text("No secret.")
    (folder / "link.md").symlink_to(outside)
    (folder / "same.md").symlink_to(folder / "inside.md")
    inside, link, same = read_documents([folder])
    assert link == FileNote("link.md", "is a link that leads out of the folder")
    assert isinstance(inside, SourceDocument)
    assert isinstance(same, SourceDocument)


def test_paths_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("x")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.md").write_text("Text.")
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        files_of([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"a\.xyz: not a document: the name must end in \.pdf, "):
        files_of([tmp_path / "a.xyz"])
    with pytest.raises(InputError, match=r"two.same\.md: another document is called 'same\.md' too; name one folder"):
        files_of([tmp_path / "one", tmp_path / "two"])


def test_a_library_that_is_not_installed_is_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(read._LIBRARIES, "pdf", "no_such_library")
    (tmp_path / "a.md").write_text("Text.")
    assert len(list(read_documents([tmp_path]))) == 1
    write_pdf(tmp_path / "b.pdf", ["x"])
    with pytest.raises(MissingExtraError, match=r"reading PDF files needs the extra 'documents', .* install .*pypdf"):
        list(read_documents([tmp_path]))


def test_keys_of_the_environment_do_not_reach_the_process_that_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    process = read._started()
    try:
        assert b"sk-secret" not in Path(f"/proc/{process.pid}/environ").read_bytes()
    finally:
        process.kill()
        with process:
            pass


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such names")
def test_a_name_that_is_no_text_is_said_and_the_file_passed_over(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"b\xffad.md")).write_text("Lost.")
    (tmp_path / "good.md").write_text("Kept.")
    skipped, kept = sorted(read_documents([tmp_path]), key=lambda found: isinstance(found, SourceDocument))
    assert skipped == FileNote("b\ufffdad.md", "has a name that is not UTF-8; rename it")
    assert kept.source == "good.md"


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
    "NUL": ("a.html", b"<meta charset=utf-8><p>o\0ne", [], [("skipped", "holds NUL bytes; is it a text file?")]),
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


def test_text_is_read_or_said_to_be_missing(tmp_path: Path) -> None:
    for case, (name, content, *_) in FILES.items():
        (tmp_path / f"{case}.{name}").write_bytes(content)
    texts: dict[str, list[str]] = {f"{case}.{name}": [] for case, (name, *_) in FILES.items()}
    said: dict[str, list[tuple[str, str]]] = {name: [] for name in texts}
    for found in read_documents([tmp_path]):
        if isinstance(found, SourceDocument):
            texts[found.source] += [text for part in found.parts for text in part.paragraphs]
        else:
            said[found.source].append((found.outcome, found.reason))
    for case, (name, _, *expected) in FILES.items():
        assert [texts[f"{case}.{name}"], said[f"{case}.{name}"]] == expected, case


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
    assert done.err.splitlines() == ["note: .git: hidden, not read", f"skipped: link: {link}", f"skipped: loop: {link}"]


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
    said = json.loads(cli("documents", tmp_path, "--format", "json").out)["skipped"]
    assert said == [{"source": "report.docx", "reason": "1 embedded object not read", "outcome": "partly read"}]
