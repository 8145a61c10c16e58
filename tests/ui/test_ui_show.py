"""A board's sections on the page, in Streamlit's own test harness."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from arena.present.numbers import MONEY, POINTS, SECONDS
from arena.present.table import Column, Table
from tests.support.pages import sent, tables
from ui.show import frame


def _page() -> None:
    from arena.present.blocks import Check, Checks, Commands, Figure, Figures, Remarks, Section
    from arena.present.numbers import COUNT, PERCENT, POINTS
    from arena.present.table import Column, Table
    from retrieval_eval.stats.estimate import Estimate
    from ui.show import show_section

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
    show_section(section)


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


def test_streamlits_own_table_shows_no_number_as_nothing_and_sets_thousands_apart() -> None:
    columns = (Column("cost", "Cost", MONEY), Column("took", "Took", SECONDS), Column("points", "Points", POINTS))
    rows = [{"cost": 0.000012, "took": 0.0042, "points": 1234.4}, {"cost": 1.5, "took": 2.0, "points": None}]
    cells, settings = frame(Table("t", "", columns, rows))
    assert cells.to_dict("list")["Cost"] == [0.000012, 1.5]
    written = {heading: own["type_config"]["format"] for heading, own in settings.items()}
    assert written == {"Cost": "$%.6f", "Took": "%.4f s", "Points": "localized"}


def test_words_are_shown_as_they_are() -> None:
    page = drawn()
    shown = "".join(str(element.proto.body) for element in page.get("html"))
    assert "&lt;script&gt;A note.&lt;/script&gt;" in shown
    assert "<li>*One*</li>" in shown
    assert "<b>What to do:</b> Judge both." in shown
    assert "95% interval: 20 to 30%" in shown
    assert "No game yet." in shown
    assert page.code[0].value == "ragleague run"
