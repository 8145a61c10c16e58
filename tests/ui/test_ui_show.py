"""A board's sections on the page, and texts from outside as sanitised Markdown."""

from __future__ import annotations

import re
from html import escape, unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.support.pages import sent, shown, tables
from ui.text import MOST_MARKUP, alike, written


def _page() -> None:
    from arena.present.blocks import Check, Checks, Commands, Figure, Figures, Remarks, Section
    from arena.present.numbers import COUNT, PERCENT, POINTS
    from arena.present.table import Column, Table
    from retrieval_eval.stats.estimate import Estimate
    from ui.show import draw

    columns = (
        Column("agent", "Agent"),
        Column("bt", "Bradley-Terry", POINTS, interval="95% interval"),
        Column("share", "Share", PERCENT),
        Column("games", "Games", COUNT),
        Column("none", "Nothing", COUNT),
    )
    rows = [
        {"agent": f"<b>{number}</b>", "bt": Estimate(1000.0 + number, 990, 1010), "share": 0.432, "games": 3}
        for number in range(8)
    ]
    section = Section(
        "ident",
        "A [title]",
        "What it answers.",
        [
            Table("ratings", "Ratings", columns, rows, ["<script>A note.</script>"]),
            Figures([Figure("Ties", 0.25, PERCENT, "Share of ties.", 0.2, 0.3)]),
            Checks([Check("Orders", "failed", "They differ.", "Judge both.")]),
            Remarks(["*One*", "Two"]),
            Commands(["ragleague run"]),
            Table("empty", "", columns, [], ["No game yet."]),
        ],
    )
    draw(section)


def drawn() -> AppTest:
    page = AppTest.from_function(_page).run()
    assert not page.exception
    return page


def test_a_table_leaves_out_what_nobody_knows_and_sorts_numbers_by_their_value() -> None:
    (found,) = tables(drawn())
    assert list(found) == ["Agent", "Bradley-Terry", "95% interval", "Share", "Games"]
    assert found["Bradley-Terry"].tolist() == [1000.0 + number for number in range(8)]
    assert found["95% interval"][0] == "990 to 1,010"
    assert 'data-value="0.432">43%</td>' in sent(drawn())


def test_a_table_is_filtered_by_what_its_cells_hold() -> None:
    page = drawn()
    page.text_input(key="ratings-filter").set_value("B>3").run()
    assert tables(page)[0]["Agent"].tolist() == ["<b>3</b>"]
    page.text_input(key="ratings-filter").set_value("nowhere").run()
    assert any("No row contains this." in caption.value for caption in page.caption)


def test_a_long_table_shows_its_first_rows_and_finds_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.show._MOST_CELLS", 15)
    page = drawn()
    assert tables(page)[0]["Agent"].tolist() == ["<b>0</b>", "<b>1</b>", "<b>2</b>"]
    assert "and 5 more (the filter finds them)" in shown(page)
    page.text_input(key="ratings-filter").set_value("B>7").run()
    assert tables(page)[0]["Agent"].tolist() == ["<b>7</b>"]


def test_words_are_shown_as_they_are() -> None:
    page = drawn()
    shown = "".join(str(element.proto.body) for element in page.get("html"))
    assert "&lt;script&gt;A note.&lt;/script&gt;" in shown
    assert "<li>*One*</li>" in shown
    assert "<b>What to do:</b> Judge both." in shown
    assert "95% interval: 20 to 30%" in shown
    assert "No game yet." in shown
    assert page.code[0].value == "ragleague run"


ANSWER = """# Notice *periods*

| Contract | Weeks |
|---|---|
| open | 4 |

3. **four** weeks
   - `a < b`

> said ~~so~~

```python
if a < b: ...
```
"""


def test_headings_tables_lists_code_and_emphasis_are_drawn() -> None:
    assert written(ANSWER) == (
        "<h4>Notice <em>periods</em></h4><table><thead><tr><th>Contract</th><th>Weeks</th></tr></thead>"
        "<tbody><tr><td>open</td><td>4</td></tr></tbody></table>"
        '<ol start="3"><li><strong>four</strong> weeks<ul><li><code>a &lt; b</code></li></ul></li></ol>'
        "<blockquote><p>said <s>so</s></p></blockquote><pre><code>if a &lt; b: ...\n</code></pre>"
    )
    assert written(ANSWER, raw=True) == f'<div class="raw">{escape(ANSWER)}</div>'


@pytest.mark.parametrize(
    "planted",
    [
        "<script>window.__pwned=1</script>",
        '<img src=x onerror="window.__pwned=2">',
        "<style>body { display: none }</style>",
        "<!-- unseen -->",
        "![x](http://127.0.0.1:9/leak.png)",
        "[link](javascript:window.__pwned=3) [other][1] <http://127.0.0.1:9> www.example.com",
        "[1]: http://127.0.0.1:9 'title'",
        "$x^2$ :smile: :red[red] :material/home: &lt;b&gt; &#60;b&#62;",
    ],
)
def test_what_is_no_formatting_shows_as_it_was_written(planted: str) -> None:
    assert written(planted) == f"<p>{escape(planted)}</p>"


@pytest.mark.parametrize(
    "hiding",
    [
        "|a|b|\n|-|-|\n|1|2|unseen|",  # a cell without a column
        "> " * 200 + "unseen",
        "\n".join("  " * depth + f"- {depth}" for depth in range(150)),
        "**word** " * MOST_MARKUP,
    ],
)
def test_a_text_that_markdown_would_hide_or_be_slow_at_is_shown_raw(hiding: str) -> None:
    assert written(hiding).startswith('<div class="raw">')


TAG = re.compile(
    r'</?(p|h[456]|ul|ol( start="\d+")?|li|blockquote|table|thead|tbody|t[hdr]|em|strong|s|[bh]r|pre|code'
    r'|div( class="raw")?)>'
)


@given(st.text(st.sampled_from("ab1 \n\r\t\0`*_~#>|-+=.)(<&[]!:\\\"'$\ud800é"), max_size=60))
def test_no_text_breaks_a_tag_or_loses_a_letter(text: str) -> None:
    left = re.sub(TAG, "", written(text))
    assert "<" not in left
    letters = [sum(map("abé".count, own)) for own in (unescape(left), text)]
    assert letters[0] == letters[1] or any(fence in text for fence in ("```", "~~~"))  # which may name a language


def test_differences_are_marked_in_runs_of_words_and_inert() -> None:
    left, right = "The **cat** <b>sat</b> on a mat", "the dog <b>sat</b> on a mat & ran"
    assert written(left, against=right) == (
        "<p>The <strong><mark>cat</mark></strong> &lt;b&gt;sat&lt;/b&gt; on a mat</p>"
    )
    assert written(right, against=left) == (
        "<p>the <mark>dog</mark> &lt;b&gt;sat&lt;/b&gt; on a mat <mark>&amp; ran</mark></p>"
    )


def test_only_texts_that_share_half_of_their_words_in_order_are_alike() -> None:
    assert alike("a b c d", "a x c y")
    assert not alike("a b c d", "a x y z")
    assert not alike("a b c d", "a b c d")
    assert not alike("word " * 5000, "word")
