"""Reading documents of every format; what is wrong with files is said, and never stops the others."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from judges.errors import InputError, MissingExtraError
from retrieval_eval.documents import read
from retrieval_eval.documents.read import files_of, read_documents
from retrieval_eval.documents.types import FileNote, Limits, Part, SourceDocument
from tests.support.document_files import (
    write_docx,
    write_docx_bomb,
    write_laughing_docx,
    write_looping_pdf,
    write_pdf,
    write_slow_pdf,
)


def one(path: Path, limits: Limits | None = None) -> SourceDocument | FileNote:
    (found,) = read_documents([path], limits)
    return found


def document(path: Path) -> SourceDocument:
    found = one(path)
    assert isinstance(found, SourceDocument), found
    return found


def reason(path: Path, limits: Limits | None = None) -> str:
    found = one(path, limits)
    assert isinstance(found, FileNote), found
    assert found.source == path.name
    return found.reason


def test_a_pdf_gives_its_pages_with_their_numbers(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "guide.pdf", ["One line\nand its end.", "", "Größe: 3 µm"], title="A  Guide")
    parts = (Part("", 1, ("One line and its end.",)), Part("", 3, ("Größe: 3 µm",)))
    assert document(path) == SourceDocument("guide.pdf", "A Guide", parts)


def test_a_pdf_without_a_title_is_called_by_its_file(tmp_path: Path) -> None:
    assert document(write_pdf(tmp_path / "guide v2.pdf", ["Text."])).title == "guide v2"


def test_a_docx_gives_its_sections_with_lists_and_tables_whole(tmp_path: Path) -> None:
    sections = (
        Part("", None, ("An introduction.",)),
        Part("Setting up", None, ("Do this:\nSwitch on.\nWait.", "both\nleft | right")),
        Part("Faults", None, ("Call us.",)),
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
        Part("", None, ("They measure things. Always.", "Such as:\nheat\nlight\nred")),
        Part("Prices & more", None, ("part | price\nA | 3 €", "two\nlines")),
    )
    assert document(path) == SourceDocument("page.html", "Sensors", sections)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<meta charset='iso-8859-1'><p>Gr\u00f6\u00dfe".encode("latin-1"), "Größe"),
        ("<meta http-equiv=x content='text/html; charset=windows-1252'><p>\u20ac".encode("cp1252"), "€"),
        ("<p>Größe".encode(), "Größe"),
        ("<p>Größe".encode("utf-16"), "Größe"),
        (b"\xef\xbb\xbf<meta charset=latin1><p>Gr\xc3\xb6\xc3\x9fe", "Größe"),
    ],
)
def test_html_is_read_in_the_encoding_that_it_declares(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "p.htm").write_bytes(content)
    assert document(tmp_path / "p.htm").parts == (Part("", None, (text,)),)


def test_markdown_and_text_give_their_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Page\n\nOne\nline.\n\n## Part\n\n- a\n- b\n")
    (tmp_path / "b.txt").write_bytes("\ufeffFirst\r\nline.\r\n \r\n\r\nSecond.\f Third.".encode())
    assert list(read_documents([tmp_path])) == [
        SourceDocument("a.md", "Page", (Part("", None, ("One line.",)), Part("Part", None, ("a\nb",)))),
        SourceDocument("b.txt", "b", (Part("", None, ("First\nline.", "Second.", "Third.")),)),
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
    "no pdf": ("a.pdf", lambda path: path.write_bytes(b"%PDF-1.7\n\0\xff"), "is broken: PdfStreamError: "),
    "no docx": ("a.docx", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0"), "is not a DOCX file, or damaged; "),
    "laughing": ("a.docx", write_laughing_docx, "is broken: XMLSyntaxError: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path, case: str) -> None:
    name, make, said = WRONG[case]
    make(tmp_path / name)
    assert reason(tmp_path / name).startswith(said)


def test_a_pdf_that_is_cut_off_is_skipped(tmp_path: Path) -> None:
    whole = write_pdf(tmp_path / "a.pdf", ["text"] * 3)
    whole.write_bytes(whole.read_bytes()[:700])
    assert reason(whole).startswith("is broken: Pdf")


def test_a_pdf_that_wants_only_the_empty_password_is_read(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(write_pdf(tmp_path / "open.pdf", ["Not so secret."])))
    writer.encrypt("", owner_password="owner", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    assert document(tmp_path / "a.pdf").parts[0].paragraphs == ("Not so secret.",)


def test_files_larger_than_the_limits_are_skipped(tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    big.write_text("word " * 300_000)
    assert reason(big, Limits(megabytes=1)) == "has 1 MB, more than 1"
    dense = tmp_path / "dense.txt"
    dense.write_text("word " * 150_000)
    assert reason(dense, Limits(megabytes=1)) == "has more than 100000 characters of text"
    assert reason(write_docx_bomb(tmp_path / "b.docx", 5_000_000), Limits(megabytes=1)) == "unpacks to 5 MB"
    assert reason(write_pdf(tmp_path / "p.pdf", ["a"] * 4), Limits(pages=3)) == "has 4 pages, more than 3"


def test_a_file_that_takes_too_long_is_ended_and_the_next_one_is_read(tmp_path: Path) -> None:
    write_slow_pdf(tmp_path / "a.pdf")
    (tmp_path / "b.txt").write_text("Text.")
    started = time.monotonic()
    slow, next_one = read_documents([tmp_path], Limits(seconds=2))
    assert slow == FileNote("a.pdf", "took longer than 2 s")
    assert isinstance(next_one, SourceDocument)
    assert time.monotonic() - started < 30


def test_a_file_that_wants_too_much_memory_takes_nothing_else_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>x" * 7_000_000)
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
