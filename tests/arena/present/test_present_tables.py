"""One table, every renderer."""

import csv
import io
import json
import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.console import Console

from arena.present import files, markup, terminal
from arena.present.blocks import Check, Checks, Figure, Figures, Remarks, Section, VerdictCard
from arena.present.numbers import COUNT, PERCENT, POINTS, printable
from arena.present.table import Column, Table, json_text, records, shown
from retrieval_eval.stats.estimate import Estimate

COLUMNS = (
    Column("agent", "Agent"),
    Column("bt", "Bradley-Terry", POINTS, interval="95% interval"),
    Column("kappa", "Kappa", PERCENT, interval="Interval"),
    Column("share", "Nothing known", PERCENT),
    Column("elo", "", POINTS),
    Column("said", "Won/tied/lost", programs=False),
    Column("flags", "Read with care"),
    Column("games", "Games", COUNT),
)
ROWS = (
    {"agent": "a|b", "bt": 1012.25, "bt_low": 990.0, "bt_high": 1040.0, "elo": 1000.1234567, "said": "2/0/1"}
    | {"flags": ("undefeated", "single_game"), "games": 3, "kappa": Estimate(0.4, 0.2, 0.6)},
    {"agent": "=1+1<b>&", "bt": 987.75, "said": "1/0/2", "games": 3, "kappa": Estimate(None)},
)
TABLE = Table("ratings", "Leaderboard", COLUMNS, ROWS, ["A note."])


def written(table: Table, width: int = 80) -> str:
    out = io.StringIO()
    terminal.show(Console(file=out, width=width, highlight=False, markup=False), [table])
    return out.getvalue()


def test_people_see_columns_that_have_a_value_and_intervals_beside_their_figures() -> None:
    assert [one.heading for one in shown(TABLE).columns] == [
        "Agent",
        "Bradley-Terry",
        "95% interval",
        "Kappa",
        "Interval",
        "Won/tied/lost",
        "Read with care",
        "Games",
    ]
    assert shown(TABLE).cells[2] == ["990 to 1,040", "-"]
    assert shown(TABLE).cells[6] == ["undefeated, single_game", "-"]


def test_programs_get_every_key_in_every_row_with_six_decimals() -> None:
    first, second = records(TABLE)
    assert list(first) == list(second)
    assert "said" not in first
    assert first["elo"] == 1000.123457
    assert (first["kappa"], first["kappa_low"], first["kappa_high"]) == (0.4, 0.2, 0.6)
    assert (second["bt_low"], second["kappa"], second["flags"]) == (None, None, None)
    assert json.loads(json_text(TABLE.rows))[0]["flags"] == ["undefeated", "single_game"]


def test_csv_has_the_records_and_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(files.csv_text(TABLE))))
    assert [row["agent"] for row in rows] == ["a|b", "=1+1<b>&"]
    assert rows[0]["flags"] == "undefeated single_game"
    assert rows[1]["share"] == ""
    assert files.csv_text(Table("none", "", COLUMNS[:2], ())) == "agent,bt,bt_low,bt_high\n"


def test_what_is_opened_in_a_spreadsheet_runs_no_formula() -> None:
    said = files.spreadsheet(["=a"], [["=1+1"], [" @x"], ["-1.5"], ["-2 to -1"], [-3]])
    assert said.split("\r\n")[:-1] == ["'=a", "'=1+1", "' @x", "-1.5", "-2 to -1", "-3"]


HOSTILE = [
    "<script>alert(1)</script>",
    "a|b",
    "*x*",
    "=cmd()",
    "[x](javascript:y)",
    "![i](http://h/p.png)",
    "red\x1b[31m",
]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"aria-label", "class", "role", "scope", "style", "tabindex", "title"}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_texts_from_outside_are_no_markup() -> None:
    hostile = Table(HOSTILE[0], HOSTILE[0], COLUMNS[:1], [{"agent": name} for name in HOSTILE], HOSTILE)
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").render(files.markdown(hostile))
    for page in (files.html_table(hostile), markdown):
        read = Tags()
        read.feed(page)
        assert read.tags <= {"caption", "div", "table", "thead", "tbody", "tr", "th", "td", "p", "strong"}
        assert {name.replace("\x1b", "\\x1b") for name in HOSTILE} <= set(read.texts)
    assert r"=1+1\textless{}b\textgreater{}\&" in files.latex(TABLE)
    starred = files.latex(Table("t", "T", COLUMNS[:1], [{"agent": name} for name in ("[1cm] x", "*y", "z")]))
    assert "\n{}[1cm] x " in starred
    assert "\n{}*y " in starred
    assert "\nz " in starred
    assert "\x1b" not in written(replace(hostile, title="\x1b[1mT"))
    assert sorted(row["agent"] for row in csv.DictReader(io.StringIO(files.csv_text(hostile)))) == sorted(HOSTILE)


LIVE = [
    "@octocat, see https://evil.example/x?a=b&c#d",
    "by @org/team and (@someone) or (x)@1234, x@5x and @5",
    "www.evil.example WWW.EVIL.EXAMPLE www.1.example evil.example/path пример.рф",
    "ann@evil.example mailto:ann@evil mailto:ann@evil.example xmpp:foo@bar.baz/txt",
    "//localhost/x //evil.example http://127.0.0.1/ ftp://h.example/",
    "fixes #123, closes GH-12, resolves user/repo#1 and user#2",
    "da39a3e user/repo@da39a3ee5e6b4b0d3255bfef95601890afd80709 1234567",
    ":x: :+1: :octocat:",
    "![i](https://evil.example/p.png) <img src=https://evil.example/p.png> <a href=x>y</a> <!-- c -->",
    "&#64;octocat &#x40;octocat &amp; \\@octocat",
    "| a || b |",
    "[^1] [x]: https://evil.example $x^2$ `code` ~~s~~ **b** __b__",
    *("- item", "+ item", "* item", "1. item", "2) item", "# heading", "> quote", "---", "===", "~~~", "    code"),
    "- [ ] task",
    "line\n\n# heading\r\n- item",
    "\u202eevil \u2066evil\u2069 \u200b@octocat",
]
"""Texts that a renderer would make something of, and ones that GitHub does."""
PLAIN = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "h3"}
TAKEN_FOR_MORE = (
    r"(?:^|[^\w)])@[a-z0-9]",
    r"@\d*[a-z]",
    r"@\d{4}",
    r"#\d",
    r"\bGH-\d",
    r"(?<![a-z0-9_])[0-9a-f]{7,40}(?![a-z0-9_])",
    r":[a-z0-9_+-]+:",
    r"https?://[\w-]*\.",
    r"\bwww\.",
    r"[\w.+-]@[\w-]+(?:\.[\w-]+)+",
    "[\u202a-\u202e\u2066-\u2069]",
)
"""What GitHub makes people, issues, commits, emoji and links of, in the text of a rendered page."""


def test_texts_from_outside_are_nothing_but_text_to_whoever_reads_the_markdown() -> None:
    table = Table("t", LIVE[0], COLUMNS[:1], [{"agent": text} for text in LIVE], LIVE)
    section = Section("s", "S", "", (table, Remarks(tuple(LIVE))))
    page = MarkdownIt("gfm-like", {"html": True}).render(files.document([section], "md"))
    read = Tags()
    read.feed(page)
    assert read.tags <= PLAIN, "no link, image, list, heading, code or line across"
    shown = {text.replace("\u200b", "") for text in read.texts}
    assert {printable(text).strip().replace("\u200b", "") for text in LIVE} <= shown, "all of it is there to be read"
    assert len(re.findall("<tr>", page)) == len(LIVE) + 1
    for sign in TAKEN_FOR_MORE:
        assert re.search(sign, "\n".join(read.texts), re.IGNORECASE) is None
        assert any(re.search(sign, text, re.IGNORECASE) for text in LIVE)


def test_measures_and_figures_stay_as_they_are_in_markdown() -> None:
    for text in ("nDCG@10", "P@5, and nDCG@10.", "RR(rel=1)@5", "0.340 to 0.753", "-0.05", "1,234,567", "12:30"):
        assert text in files.sentence(text, "md").replace("\\", "")


def test_a_cell_leads_to_the_address_of_its_row_but_to_none_that_runs_something() -> None:
    rows = [{"agent": "a", "to": "queries?agent=a&b"}, {"agent": "b", "to": "javascript:y"}, {"agent": "c"}]
    table = Table("t", "", [Column("agent", "Agent", link="to")], rows)
    assert re.findall(r"<th scope=.row.>(.*?)</th>", files.html_table(table)) == [
        '<a href="queries?agent=a&amp;b">a</a>',
        "b",
        "c",
    ]
    assert "queries?" not in files.csv_text(table) + files.markdown(table) + written(table)


def test_a_drawn_column_has_figure_and_interval_in_one_cell_on_one_scale() -> None:
    ends = {
        "a": (0.0, None, None),
        "b": (-40.0, -60.0, 20.0),
        "c": (-50.0, -80.0, -10.0),
        "far": (-900.0, -990.0, -700.0),
    }
    rows = [{"agent": name, "bt": Estimate(*own), "group": "A" if name in "ab" else "B"} for name, own in ends.items()]
    columns = [
        Column("agent", "Agent"),
        Column("group", "Group", drawn="bands"),
        Column("bt", "To first", POINTS, interval="95%", drawn="whiskers"),
    ]
    table = Table("t", "", columns, rows)
    assert "-40 (-60 to 20)" in written(table)
    drawn = files.html_table(table)
    assert drawn.count('<th scope="col"') == 3
    assert re.findall(r"<i>(.*?)</i>", drawn.partition("<tbody>")[0])[0] == "-80", (
        "the axis leaves out who is far behind"
    )
    *lines, far = re.findall(r"<tr><th scope=\"row\".*", drawn)
    assert [("cut-low" in line, " blue" in line) for line in lines] == [(False, True), (False, True), (False, False)]
    assert "cut-low" in far
    assert "-900 (-990 to -700)" in far
    kinds = re.findall(r'<i class="(.*?)">', drawn)
    assert kinds == ["on lead first", "on lead last", "on first", "on last"], "a line for each group"
    overlapping = re.findall(r'<i class="(.*?)">|<i>', "".join(markup.bands(["A", "A-B", "B-C", "C"])))
    assert overlapping == ["on lead first", "", "on lead last", "on first", "on first", "on last", "on last", ""]


def test_the_opening_s_card_and_folded_checks_hold_no_markup_from_outside() -> None:
    card = files.html_block(VerdictCard("care", "Read with care", "Tie", "<b>x</b> leads", ["Judge: <i>"]))
    assert card.startswith('<div class="verdict care">')
    assert "<b>x" not in card + files.html_block(Remarks(["<b>x"]))
    names = [Check("One <b>", "failed", "No.", "Do."), *(Check(name, "passed", "Yes.", "") for name in "ab")]
    names.append(Check("Other", "unknown", "Not seen.", "Look."))
    strip = files.html_block(Checks(names, folded=True, link="trust?view=all"))
    assert re.findall(r"<summary>.*?</span> (.*?)</summary>", strip) == [
        "Failed: one &lt;b&gt;",
        "1 not known",
        "2 passed",
    ]
    assert '<a href="trust?view=all">All checks</a>' in strip
    assert "<details" not in files.html_block(Checks(names, folded=True, link="#trust"))


def test_notes_stand_below_the_table_in_every_form_for_people() -> None:
    for form in (written(TABLE), files.markdown(TABLE), files.html_table(TABLE)):
        assert form.index("987" if "987" in form else "988") < form.index("A note")


def test_a_narrow_terminal_loses_no_digit() -> None:
    for width in (200, 80, 60, 40):
        said = written(TABLE, width)
        assert "1,040" in said
        assert "undefeated" in said.replace("\n", "") or width < 80


def test_a_section_shows_figures_checks_and_remarks() -> None:
    section = Section(
        "trust",
        "Trust",
        "Can it be believed?",
        [
            Figures([Figure("Ties", 0.25, PERCENT, "Share of ties.", 0.2, 0.3)]),
            Checks([Check("Orders", "failed", "They differ.", "Judge both."), Check("Size", "passed", "Enough.", "")]),
            Remarks(["Read some games."]),
        ],
    )
    out = io.StringIO()
    terminal.show(Console(file=out, width=200, highlight=False, markup=False), [section])
    assert out.getvalue().splitlines() == [
        "Ties: 25% (20 to 30%)",
        "",
        "FAILED: Orders. They differ. What to do: Judge both.",
        "passed: Size. Enough.",
        "",
        "Read some games.",
    ]


def test_a_narrow_terminal_folds_sentences_before_it_breaks_a_name() -> None:
    columns = [Column("a", "Rated higher"), Column("b", "Neighbour"), Column("c", "More queries needed")]
    rows = [{"a": "overlap-lead-prf", "b": "overlap-lead-bm25", "c": "about 250, at least 53"}]
    lines = written(Table("t", "", columns, rows), 50).splitlines()
    assert any("overlap-lead-prf" in line and "overlap-lead-bm25" in line for line in lines)
    assert max(map(len, lines)) <= 50
