"""Small real documents, made on the spot: PDF, DOCX, and files that are wrong in one way each."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path


def write_pdf(path: Path, pages: Sequence[str], *, title: str = "", password: str = "") -> Path:
    """Pages with a line of text each for every line; an empty one is blank."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    names = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica", "Encoding": "WinAnsiEncoding"}
    font = DictionaryObject({NameObject(f"/{key}"): NameObject(f"/{value}") for key, value in names.items()})
    fonts = DictionaryObject({NameObject("/F1"): font})
    for text in pages:
        page = writer.add_blank_page(595, 842)
        lines = "".join(f"({line}) Tj T* " for line in text.split("\n"))
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 14 TL 50 800 Td {lines}ET".encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(content)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    if title:
        writer.add_metadata({"/Title": title})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def write_slow_pdf(path: Path) -> Path:
    """A small file with many pages of many operations, each page as long as pypdf is willing to read one."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import NameObject, StreamObject

    writer = PdfWriter(clone_from=PdfReader(write_pdf(path, ["x"] * 500)))
    content = StreamObject()
    content._data = zlib.compress(b"q Q " * 900_000, 9)
    content[NameObject("/Filter")] = NameObject("/FlateDecode")
    shared = writer._add_object(content)
    for page in writer.pages:
        page[NameObject("/Contents")] = shared
    writer.write(path)
    return path


def write_looping_pdf(path: Path) -> Path:
    """Its tree of pages contains itself."""
    from pypdf import PdfWriter
    from pypdf.generic import NameObject

    writer = PdfWriter()
    writer.add_blank_page(10, 10)
    pages = writer._root_object.raw_get("/Pages")
    pages.get_object()[NameObject("/Kids")].append(pages)
    writer.write(path)
    return path


def write_docx(path: Path) -> Path:
    """A title, two sections, a list with its introduction, a table with a cell over two columns."""
    from docx import Document

    document = Document()
    document.add_heading("The Guide", 0)
    document.add_paragraph("An introduction.")
    document.add_heading("Setting up", 1)
    document.add_paragraph("Do this:")
    for item in ("Switch on.", "Wait."):
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(2, 2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "both"
    table.cell(1, 0).text, table.cell(1, 1).text = "left", "right"
    document.add_heading("Nothing here", 2)
    document.add_heading("Faults", 2)
    document.add_paragraph("Call us.")
    document.save(str(path))
    return path


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_NAMESPACES = {
    "w": _W,
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "o": "urn:schemas-microsoft-com:office:office",
    "v": "urn:schemas-microsoft-com:vml",
}


def write_word(path: Path, body: str, *, footnotes: str = "", endnotes: str = "", header: str = "") -> Path:
    """A DOCX with this XML for its body, and for its other parts where they are given."""
    from docx import Document
    from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part
    from docx.oxml.parser import parse_xml

    document = Document()
    end = document.element.body.find(f"{{{_W}}}sectPr")
    for element in list(parse_xml(_rooted("body", body))):
        end.addprevious(element)
    for kind, xml in (("footnotes", footnotes), ("endnotes", endnotes)):
        content_type = getattr(CONTENT_TYPE, f"WML_{kind.upper()}")
        part = Part(PackURI(f"/word/{kind}.xml"), content_type, _rooted(kind, xml), document.part.package)
        if xml:
            document.part.relate_to(part, getattr(RELATIONSHIP_TYPE, kind.upper()))
    if header:
        section = document.sections[0]
        section.different_first_page_header_footer = True
        for each in (section.header, section.first_page_header):
            each.is_linked_to_previous = False
            each._element.extend(parse_xml(_rooted("hdr", header)))
    document.save(str(path))
    return path


def _rooted(name: str, xml: str) -> bytes:
    declared = " ".join(f'xmlns:{prefix}="{address}"' for prefix, address in _NAMESPACES.items())
    return f"<w:{name} {declared}>{xml}</w:{name}>".encode()


def write_docx_bomb(path: Path, unpacked: int) -> Path:
    """A DOCX with a part that is far larger unpacked than packed."""
    write_docx(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/media/zeros.bin", bytes(unpacked))
    return path


def write_laughing_docx(path: Path) -> Path:
    """A DOCX whose text is a reference to a reference to a reference, a thousand million times."""
    whole = write_docx(path.with_suffix(".whole"))
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as packed:
        for name in source.namelist():
            content = source.read(name)
            if name == "word/document.xml":
                doctype = f'?><!DOCTYPE x [<!ENTITY l0 "ha">{entities}]>'.encode()
                content = content.replace(b"?>", doctype, 1).replace(b"An intro", b"&l9;An intro")
            packed.writestr(name, content)
    whole.unlink()
    return path
