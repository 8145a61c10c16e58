"""Every text of a DOCX comes out in its order and once, whatever Word wraps around it, or is said to be left out."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from retrieval_eval.documents.docx import read_docx
from retrieval_eval.documents.passages import PassagesSection, passages_of
from retrieval_eval.documents.read import read_documents
from retrieval_eval.documents.types import DocumentPart, Extract, FileNote, Limits, SourceDocument
from tests.support.document_files import write_docx, write_word


def r(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(*inner: str) -> str:
    return f"<w:p>{''.join(inner)}</w:p>"


def sdt(inner: str) -> str:
    return f"<w:sdt><w:sdtPr/><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def table(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(rows)}</w:tbl>"


def tr(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


def tc(inner: str) -> str:
    return f"<w:tc>{inner}</w:tc>"


def shown(choice: str, fallback: str) -> str:
    """What Word writes for old and for new versions of it."""
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData><wps:wsp>'
        f"<wps:txbx><w:txbxContent>{choice}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor>"
        "</w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox><w:txbxContent>"
        f"{fallback}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


TEXTS: dict[str, tuple[str, list[str]]] = {
    "tracked insertion": (p(r("one "), f"<w:ins>{r('two ')}</w:ins>", r("three")), ["one two three"]),
    "tracked deletion": (
        p(r("one "), "<w:del><w:r><w:delText>two </w:delText></w:r></w:del>", r("three")),
        ["one three"],
    ),
    "inserted, then deleted": (p(r("one"), f"<w:ins><w:del>{r(' two')}</w:del></w:ins>"), ["one"]),
    "moved text": (
        p(f"<w:moveFrom>{r('moved')}</w:moveFrom>", r("first")) + p(r("second "), f"<w:moveTo>{r('moved')}</w:moveTo>"),
        ["first", "second moved"],
    ),
    "deleted row": (table(tr(tc(p(r("kept")))), f"<w:tr><w:trPr><w:del/></w:trPr>{tc(p(r('x')))}</w:tr>"), ["kept"]),
    "block control": (
        p(r("one")) + sdt(p(r("two")) + sdt(p(r("three")))) + p(r("four")),
        ["one", "two", "three", "four"],
    ),
    "inline control": (p(r("one "), sdt(r("two ") + sdt(r("three "))), r("four")), ["one two three four"]),
    "row control": (table(tr(tc(p(r("a")))), sdt(tr(tc(p(r("b"))), tc(p(r("c")))))), ["a\nb | c"]),
    "cell control": (table(tr(tc(p(r("a"))), sdt(tc(p(r("b")))), tc(sdt(p(r("c")))))), ["a | b | c"]),
    "contents made by Word": (
        "<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val='Table of Contents'/></w:docPartObj></w:sdtPr>"
        f"<w:sdtContent>{p(r('Setting up 3'))}</w:sdtContent></w:sdt>{p(r('text'))}",
        ["text"],
    ),
    "text box": (
        p(r("before "), shown(p(r("box 1")) + p(r("box 2")), p(r("old"))), r("after")),
        ["before after", "box 1", "box 2"],
    ),
    "text box of an old Word": (
        p(
            r("one"),
            f"<w:r><w:pict><v:shape><v:textbox><w:txbxContent>{p(r('two'))}</w:txbxContent></v:textbox></v:shape></w:pict></w:r>",
        ),
        ["one", "two"],
    ),
    "text box with a table": (p(shown(table(tr(tc(p(r("a"))), tc(p(r("b"))))), "")), ["a | b"]),
    "text box in a cell": (table(tr(tc(p(r("a"), shown(p(r("box")), p(r("box"))))), tc(p(r("b"))))), ["a | b", "box"]),
    "only the old form has text": (p(shown("", p(r("old")))), ["old"]),
    "text of a shape": (
        p(
            "<w:r><w:drawing><a:graphic><a:graphicData><a:p><a:r><a:t>sha</a:t></a:r><a:r><a:t>pe</a:t></a:r></a:p></a:graphicData></a:graphic></w:drawing></w:r>"
        ),
        ["shape"],
    ),
    "WordArt": (
        p(r("one"), '<w:r><w:pict><v:shape><v:textpath string="Draft"/></v:shape></w:pict></w:r>'),
        ["one", "Draft"],
    ),
    "nested table": (
        table(
            tr(tc(p(r("a")) + table(tr(tc(p(r("b"))), tc(p(r("c")))), tr(tc(p(r("d"))))) + p(r("e"))), tc(p(r("f"))))
        ),
        ["a b, c; d e | f"],
    ),
    "hyperlink with an insertion": (p(f"<w:hyperlink>{r('one')}<w:ins>{r(' two')}</w:ins></w:hyperlink>"), ["one two"]),
    "smart tag": (p(f"<w:smartTag><w:smartTag>{r('Vienna')}</w:smartTag></w:smartTag>", r(" is")), ["Vienna is"]),
    "custom XML": (
        f"<w:customXml>{p(r('one'))}</w:customXml>" + p(f"<w:customXml>{r('two')}</w:customXml>"),
        ["one", "two"],
    ),
    "simple field": (p(r("on "), f"<w:fldSimple w:instr='DATE'>{r('1 May')}</w:fldSimple>"), ["on 1 May"]),
    "field": (
        p(
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r>',
            f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{r("see 3")}<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        ),
        ["see 3"],
    ),
    "direction": (p(f'<w:bdo w:val="rtl">{r("one")}</w:bdo><w:dir w:val="ltr">{r(" two")}</w:dir>'), ["one two"]),
    "pronunciation": (
        p(f"<w:ruby><w:rubyPr/><w:rt>{r('kana')}</w:rt><w:rubyBase>{r('kanji')}</w:rubyBase></w:ruby>"),
        ["(kana) kanji"],
    ),
    "tabs, breaks, hyphens": (
        p(
            "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:cr/><w:t>d</w:t><w:noBreakHyphen/><w:t>e</w:t>"
            '<w:br w:type="page"/><w:t>f</w:t><w:ptab/><w:t>g</w:t></w:r>'
        ),
        ["a b c d-e f g"],
    ),
    "comment in the XML": (p("<w:r><w:t>one<!-- x --> two</w:t></w:r>"), ["one two"]),
}


def paragraphs(read: Extract) -> list[str]:
    return [text for part in read.parts for text in part.paragraphs]


@pytest.mark.parametrize("construct", TEXTS)
def test_a_text_is_read_in_its_place_and_once(tmp_path: Path, construct: str) -> None:
    body, texts = TEXTS[construct]
    read = read_docx(write_word(tmp_path / "a.docx", body), Limits())
    assert (paragraphs(read), read.problems, read.notes) == (texts, (), ())


def note(kind: str, ident: int, text: str) -> str:
    return f'<w:{kind} w:id="{ident}">{p(r(text))}</w:{kind}>'


def to(kind: str, ident: int) -> str:
    return f'<w:r><w:{kind}Reference w:id="{ident}"/></w:r>'


def test_notes_follow_the_paragraph_or_the_list_that_refers_to_them(tmp_path: Path) -> None:
    item = '<w:pPr><w:pStyle w:val="ListBullet"/></w:pPr>'
    body = p(r("one"), to("footnote", 2), to("footnote", 2)) + p(item, r("a"), to("endnote", 2)) + p(item, r("b"))
    footnotes = '<w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>' + note("footnote", 2, "below")
    path = write_word(tmp_path / "a.docx", body, footnotes=footnotes, endnotes=note("endnote", 2, "behind"))
    assert paragraphs(read_docx(path, Limits())) == ["one", "below", "a\nb", "behind"]


def test_headers_and_footers_come_last_and_once(tmp_path: Path) -> None:
    heading = '<w:pPr><w:pStyle w:val="Title"/></w:pPr>'
    body = p(heading, r("The Guide")) + p(r("text"))
    path = write_word(tmp_path / "a.docx", body, header=p(r("ACME, confidential")) + p(r("3 / 12")))
    read = read_docx(path, Limits())
    assert read.title == "The Guide"
    margins = DocumentPart("Headers and footers", None, ("ACME, confidential",))
    assert read.parts == (DocumentPart("", None, ("text",)), margins)


def test_what_is_not_read_is_said_and_the_rest_is_read(tmp_path: Path) -> None:
    graphic = "<w:r><w:drawing><a:graphic><a:graphicData>{}</a:graphicData></a:graphic></w:drawing></w:r>"
    body = (
        p(r("text"), "<w:r><w:object><o:OLEObject/></w:object></w:r>" * 2, '<w:r><w:commentReference w:id="0"/></w:r>')
        + p(graphic.format("<c:chart/>"), graphic.format("<dgm:relIds/>"))
        + p("<w:r><w:sym w:font='Symbol' w:char='F061'/></w:r>")
        + p("<m:oMathPara><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></m:oMathPara>")
        + '<w:altChunk r:id="rId99"/>'
    )
    write_word(tmp_path / "report.docx", body)
    document, partly, said = read_documents([tmp_path])
    assert isinstance(document, SourceDocument)
    assert document.parts == (DocumentPart("", None, ("text",)),)
    reason = "2 embedded objects, 1 chart, 1 diagram, 1 symbol, 1 formula, 1 imported file not read"
    assert partly == FileNote("report.docx", reason, "partly read")
    assert said == FileNote("report.docx", "1 comment left out", "note")


@pytest.mark.parametrize("entity", ["'Ltd'", "SYSTEM 'file:///etc/passwd'"])
def test_text_behind_an_entity_is_read_and_the_entity_never_looked_up(tmp_path: Path, entity: str) -> None:
    whole = write_word(tmp_path / "whole", p(r("ACME X is ours.")))
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as packed:
        for name in source.namelist():
            content = source.read(name)
            if name == "word/document.xml":
                content = content.replace(b"?>", f"?><!DOCTYPE x [<!ENTITY e {entity}>]>".encode(), 1)
                content = content.replace(b"ACME X", b"ACME &e;")
            packed.writestr(name, content)
    read = read_docx(path, Limits())
    assert (paragraphs(read), read.problems) == (["ACME is ours."], ("1 entity reference not read",))


def test_cells_over_several_rows_are_read_however_many_there_are(tmp_path: Path) -> None:
    first = '<w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>' + p(r("a")) + "</w:tc>"
    rest = "<w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>"
    rows = [tr(first, tc(p(r("0"))))] + [tr(rest, tc(p(r(str(number))))) for number in range(1, 1200)]
    (text,) = paragraphs(read_docx(write_word(tmp_path / "a.docx", table(*rows)), Limits()))
    assert text.splitlines()[::600] == ["a | 0", "a | 600"]


def test_a_document_without_all_that_is_read_and_cut_as_ever(tmp_path: Path) -> None:
    (document,) = read_documents([write_docx(tmp_path / "guide.docx")])
    assert isinstance(document, SourceDocument)
    passages = [
        repr(each) for how in ("paragraph", "tokens") for each in passages_of(document, PassagesSection(by=how))
    ]
    assert sha256("\n".join(passages).encode()).hexdigest()[:16] == "68fcf17adaa7d28e"
