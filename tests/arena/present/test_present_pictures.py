"""Pictures: the same value as HTML, SVG and PNG, with every text inert."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from arena.present.charts import inline_svg, png, svg
from arena.present.files import save_plot
from arena.present.markup import STYLE, html
from arena.present.numbers import FIGURE, PERCENT, POINTS
from arena.present.picture import (
    Aligned,
    CellPanel,
    Chart,
    Dot,
    LevelLine,
    Line,
    Look,
    Mark,
    Matrix,
    MatrixCell,
    Picture,
    RankScale,
    Scale,
    Share,
    Strip,
    Whiskers,
    of_table,
)
from arena.present.table import Column, Table
from judges.errors import DataError, MissingExtraError
from ragleague.shown import NotebookPicture
from retrieval_eval.stats.estimate import Estimate

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<img src=x onerror="alert(1)">'
RATINGS = Whiskers(
    "ratings",
    "Ratings",
    "Ratings with intervals",
    "How to read it",
    [
        Line("known", [Mark(1010, 990, 1030)], rank="1-2", tag="leads"),
        Line(HOSTILE, [Mark(1000, look="quiet")], rank="2"),
    ],
    "points",
    POINTS,
)
CELLS = {
    ("a", HOSTILE): MatrixCell("75", 0.5, below="8", tooltip="won 6", bold=True, link="games?agent=a"),
    (HOSTILE, "a"): MatrixCell("25", -0.5, tooltip=HOSTILE),
}
LINKS = {"a": "queries?agent=a", HOSTILE: "javascript:alert(1)"}
WINS = Matrix("wins", "Wins", "Who beats whom", "", ["a", HOSTILE, "c"], ["a", HOSTILE, "c"], CELLS, links=LINKS)
FRONT = Chart(
    "front",
    "Rating against latency",
    "A chart",
    "Up is better",
    "seconds",
    "points",
    [Dot(2, 1100, HOSTILE), Dot(0.5, 1000, "fast"), Dot(3, 900, "poor", "grey"), Dot(1, 950, "behind", "quiet")],
    [(2, 1100), (0.5, 1000)],
    stepped=True,
    levels=[LevelLine(1000, "even")],
    zero=True,
)
SIDE_BY_SIDE = Aligned(
    "compare",
    "Scores",
    "Agents by every score",
    "How it is read",
    ["a", HOSTILE, "c"],
    [
        Strip("Games", {"a": Mark(1, 1, 2, link="queries?agent=a"), HOSTILE: Mark(2)}, 3),
        CellPanel("Wins", CELLS),
        Strip(
            "EXAM",
            {"c": Mark(2, 1, 3, "orange", tooltip=f"above {HOSTILE}", band=(3, 3), link="javascript:alert(1)")},
            3,
            ("orange", f"disagrees on {HOSTILE}"),
            [Share("blue", 1, "proven"), Share("orange", 3, HOSTILE, faint=True)],
            [f"100 {HOSTILE}"],
        ),
    ],
    "Agent",
    {"a": "queries?agent=a"},
    [2, 4, 7],
    {"orange": f"reversed {HOSTILE}"},
)
PICTURES = [RATINGS, WINS, FRONT, SIDE_BY_SIDE]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda own: own.name)
def test_no_picture_runs_or_styles_anything_by_itself(picture: Picture) -> None:
    drawn = html(picture)
    assert HOSTILE not in drawn
    for element in ElementTree.fromstring(drawn).iter():
        assert element.tag.rpartition("}")[2] not in {"script", "style", "img", "image", "use", "foreignObject"}
        assert not [name for name in element.attrib if name == "style" or name.startswith("on")]
        assert not (element.get("href") or "").startswith("javascript")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda own: own.name)
def test_every_picture_is_drawn_for_files(picture: Picture) -> None:
    drawn = svg(picture)
    ElementTree.fromstring(drawn)
    assert HOSTILE not in drawn
    assert "&lt;img" in drawn
    assert png(picture).startswith(b"\x89PNG")


def test_a_mark_stands_in_the_middle_of_its_interval_and_without_one_has_no_line() -> None:
    first, second = re.findall(r'class="field".*?</(?:div|a)><div', html(RATINGS))
    widths = [float(width) for width in re.findall(r'width="([\d.]+)%"', first)]
    assert widths[1] == pytest.approx(widths[2])
    assert ("low at" in first, "low" in second, second.count("at")) == (True, False, second.count('class="at"') + 1)


def test_names_and_cells_of_a_matrix_lead_where_they_say() -> None:
    drawn = html(WINS)
    assert drawn.count('<a href="queries?agent=a">a</a>') == 2
    assert '<a href="games?agent=a">75</a>' in drawn


def test_figures_stand_beside_their_marks_in_their_form() -> None:
    assert "<b>1,010</b> 990 to 1,030" in html(RATINGS)
    share = replace(RATINGS, lines=[Line("a", [Mark(0.43, 0.4, 0.46)])], form=PERCENT, zero=True)
    assert "<b>43%</b> 40 to 46%" in html(share)
    assert "<i>0%</i>" in html(share)


def test_looks_are_told_apart_by_shape_and_explained() -> None:
    several = [Line("a", [Mark(1, 0, 2), Mark(-1, look="grey")])]
    picture = replace(RATINGS, lines=several, legend={"blue": "corrected", "grey": HOSTILE})
    assert {"corrected", "a"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", svg(picture)))
    drawn = html(picture)
    assert drawn.count('class="bar grey"') == 2
    assert "corrected" in drawn


@pytest.mark.parametrize("values", [[1000.0], [990.5, 1010.0], [-3000.0, 4000.0], [0.001, 0.0012], [1e9, 2e9]])
def test_an_axis_holds_its_values_whatever_they_are(values: list[float]) -> None:
    scale = Scale(values, FIGURE)
    assert all(0 <= scale.place(value) <= 100 for value in values)
    assert 2 <= len(set(scale.ticks)) == len(scale.ticks) <= 8


@pytest.mark.parametrize(
    ("values", "form", "ticks"),
    [
        ([982.4, 1030], POINTS, ["980", "990", "1,000", "1,010", "1,020", "1,030"]),
        ([0.0], FIGURE, ["0", "1"]),
        ([0.31, 0.334], PERCENT, ["31.0%", "31.5%", "32.0%", "32.5%", "33.0%", "33.5%"]),
        ([-0.004, 0.02], FIGURE, ["-0.005", "0.000", "0.005", "0.010", "0.015", "0.020"]),
    ],
)
def test_an_axis_has_few_round_ticks_that_enclose_all(values: list[float], form: object, ticks: list[str]) -> None:
    scale = Scale(values, form)
    assert scale.ticks == ticks
    assert all(0 <= scale.place(value) <= 100 for value in values)


def test_cells_say_figure_count_and_more_by_pointer_and_lead_where_they_should() -> None:
    drawn = html(WINS)
    assert '<td class="more-5 apart" title="won 6"><a href="games?agent=a">75</a><small>8' in drawn
    assert drawn.count("<td></td>") == 7
    assert 'role="region" tabindex="0" aria-label="Who beats whom"' in drawn
    assert all(f".cells .{side}-{shade} " in STYLE for side in ("more", "less") for shade in range(11))


def test_a_large_matrix_keeps_its_figures_and_drops_what_stands_below_them() -> None:
    names = [f"a{i}" for i in range(30)]
    cells = {
        (a, b): MatrixCell("50", 0.0, below="2 games", tooltip=f"{a} and <{b}>", link=f"games?agent={a}&other={b}")
        for a in names
        for b in names
        if a != b
    }
    drawn = html(replace(WINS, rows=names, columns=names, cells=cells))
    assert drawn.count('<td class="less-0">50</td>') == 870
    assert '<tr data-cells="games?agent=a7&amp;other=a\na7 and &lt;a\n0 0&gt;\n1 1&gt;\n' in drawn
    assert "6 6&gt;\n\n8 8&gt;" in drawn, "nothing stands where an agent would meet itself"
    assert "2 games" not in drawn
    alone = html(
        replace(WINS, rows=names, columns=names, cells={key: replace(own, link="") for key, own in cells.items()})
    )
    assert alone.count('<td class="less-0" title="a7 and') == 29
    assert "data-cells" not in alone


def test_a_chart_names_the_dots_that_have_room_and_no_quiet_one() -> None:
    drawn = inline_svg(
        replace(
            FRONT, dots=[*FRONT.dots, *(Dot(2, 1100, name) for name in ("beside", "left", "low", "lower", "covered"))]
        )
    )
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert {"fast", "poor", "even", "beside"} <= set(texts)
    assert not {"covered", "behind"} & set(texts)
    assert "<title>behind: 1, 950</title>" in drawn
    assert 'fill="currentColor"' in drawn


def test_a_plot_is_written_by_the_ending_of_its_name(tmp_path: Path) -> None:
    for ending, start in ((".svg", b"<svg"), (".PNG", b"\x89PNG"), (".html", b"<!DOCTYPE html>")):
        save_plot(path := tmp_path / f"plot{ending}", PICTURES, "Plots")
        assert path.read_bytes().startswith(start)
    with pytest.raises(DataError, match=r"\.svg, \.png or \.html"):
        save_plot(tmp_path / "plot.pdf", PICTURES, "Plots")


def test_figures_of_a_table_are_drawn_where_they_are_known() -> None:
    columns = (Column("name", "Name"), Column("found", "Found", FIGURE), Column("corrected", "Corrected", FIGURE))
    rows = [{"name": "a", "found": Estimate(0.5, 0.4, 0.6), "corrected": None}, {"name": "b"}]
    looks: dict[Look, str] = {"blue": "found", "grey": "corrected"}
    (drawn,) = of_table(Table("t", "", columns, rows), looks, "share", "Shares")
    assert drawn.lines == [Line("a", [Mark(0.5, 0.4, 0.6, "blue")])]
    assert drawn.legend == {"blue": "Found"}, "Corrected has no figure"


def test_panels_stand_on_the_same_rows_and_lead_where_they_should() -> None:
    drawn = ElementTree.fromstring(html(SIDE_BY_SIDE))
    strips, grid = drawn.findall("div[@class='beside']/div/table")
    linked = [
        [[bool(cell.findall(".//a")) for cell in row] for row in table.findall("tbody/tr")] for table in (strips, grid)
    ]
    assert linked[0] == [[True, True, False], [False] * 3, [False] * 3]
    assert linked[1] == [[True, False, True, False], [False] * 4, [False] * 4]
    for table in (strips, grid):
        assert [row.findtext("th/span") for row in table.findall("tbody/tr")] == ["2", "4", "7"]
    axes = strips.findall("thead/tr[@class='axes']/td")
    assert [[tick.text for tick in axis.iter("i")] for axis in axes] == [
        [],
        ["1", "2", "3"],
        ["1", "2", "3"],
    ]
    assert [head.text for head in grid.findall("thead/tr[@class='axes']/th")] == ["Agent", "2", "4", "7"]


def test_a_strip_says_its_verdict_counts_and_signs_in_words_too() -> None:
    drawn = html(SIDE_BY_SIDE)
    assert '<span class="said orange">≠ disagrees on &lt;img' in drawn
    assert 'role="img" aria-label="1 proven, 3 &lt;img' in drawn
    assert '<td width="25.00%" class="blue"></td><td width="75.00%" class="orange faint"></td>' in drawn
    assert ">≠ 1 to 3</small>" in drawn
    assert 'class="bar band"' in drawn
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", svg(SIDE_BY_SIDE)))
    assert {"≠", "1 to 3", "1 to 2", "Scores", "How it is read"} <= words


@pytest.mark.parametrize(
    ("last", "ticks"), [(1, ["1", "2"]), (2, ["1", "2"]), (7, ["1", "3", "5", "7"]), (50, ["1", "18", "35", "52"])]
)
def test_an_axis_of_ranks_has_whole_numbers_at_equal_distances(last: int, ticks: list[str]) -> None:
    scale = RankScale(last)
    assert scale.ticks == ticks
    places = [scale.place(float(tick)) for tick in ticks]
    assert places == pytest.approx([100 * at / (len(ticks) - 1) for at in range(len(ticks))])


def test_many_panels_are_wrapped_in_parts_of_equal_size() -> None:
    strip, grid = SIDE_BY_SIDE.panels[0], SIDE_BY_SIDE.panels[1]
    assert svg(replace(SIDE_BY_SIDE, panels=[grid])).count(">Wins</text>") == 1
    many = replace(SIDE_BY_SIDE, panels=[*[strip] * 8, grid])
    assert [len(block) if isinstance(block, list) else block for block in many.blocks] == [4, 4, grid]
    assert html(many).count("<thead>") == 3
    width, height = (float(size) for size in re.findall(r'(?:width|height)="(\d+)"', svg(many))[:2])
    once, lower = (float(size) for size in re.findall(r'(?:width|height)="(\d+)"', svg(SIDE_BY_SIDE))[:2])
    assert width < 2 * once
    assert height > lower
    assert width < 1600


def test_a_dot_has_its_intervals_and_leads_where_it_should() -> None:
    dots = [
        Dot(2, 1100, "a", x_ends=(1, 3), y_ends=(900, 1200), link="queries?agent=a"),
        Dot(0.5, 1000, "b", x_ends=(0.4, 0.6), link="javascript:alert(1)"),
    ]
    with_ends, without = (replace(FRONT, dots=drawn) for drawn in (dots, [Dot(2, 1100), Dot(0.5, 1000)]))
    drawn = ElementTree.fromstring(inline_svg(with_ends))
    (link,) = drawn.iter(f"{SVG}a")
    assert (link.get("href"), [hint.text for hint in link.iter(f"{SVG}title")]) == ("queries?agent=a", ["a: 2, 1100"])
    assert "href" not in svg(with_ends)
    intervals = [line for line in drawn.iter(f"{SVG}line") if line.get("stroke-opacity") == "0.7"]
    (across, up, _), mark = intervals, link[0]
    assert float(across.get("x1", 0)) < float(mark.get("cx", 0)) < float(across.get("x2", 0))
    assert across.get("y1") == across.get("y2") == mark.get("cy")
    assert float(up.get("y1", 0)) > float(mark.get("cy", 0)) > float(up.get("y2", 0))
    assert inline_svg(without).count('stroke-opacity="0.7"') == 0


def test_a_file_holds_pictures_in_two_columns_that_do_not_overlap() -> None:
    pairs = [
        tuple(map(int, re.findall(r"\d+", group.get("transform", ""))))
        for group in ElementTree.fromstring(svg(*PICTURES)).findall(f"{SVG}g")
    ]
    first, second, third, fourth = pairs
    assert first[0] == third[0] < second[0] == fourth[0]
    assert first[1] == second[1] < third[1] == fourth[1]


def test_a_picture_as_png_needs_an_extra_and_others_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    save_plot(tmp_path / "plot.svg", PICTURES, "Plots")
    with pytest.raises(MissingExtraError, match=r"extra 'png', which is not installed: .* install"):
        save_plot(tmp_path / "plot.png", PICTURES, "Plots")
    assert not (tmp_path / "plot.png").exists()


def test_notebooks_draw_pictures_by_themselves() -> None:
    assert NotebookPicture(WINS)._repr_html_() == f"<style>{STYLE}</style>{html(WINS)}"
