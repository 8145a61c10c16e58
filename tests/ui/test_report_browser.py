"""The report in a real Chromium, opened from disk: two pages to print, no request, no planted script, and it fits."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page
from pypdf import PdfReader
from typer.testing import CliRunner

from arena.cli.app import app
from benchmarks import page_store
from tests.support.browser import chromium, served, visit
from tests.support.sample_store import write_store

PLANTED = (
    "<script>window.__pwned=1</script>",
    '<img src=x onerror="window.__pwned=2">',
    "</style></title></textarea><svg onload=window.__pwned=3>",
    '"><a href="javascript:window.__pwned=4">x</a>',
    "{{ 7*7 }} {% raw %} ![x](http://127.0.0.1:9/leak.png) <b>b</b> \u202edesrever",
)
AGENTS = (*PLANTED, "w" * 300)
NAME = "<script>window.__pwned=5</script>"


def hostile(_kind: str, text: str) -> str:
    return "\n".join((text, *PLANTED))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    people = {f"q{number:02}": {f"q{number:02}-common": 1} for number in range(12)}
    store = write_store(
        folder / "s.db",
        name="<script>window.__pwned=5</script>",
        agents=AGENTS,
        wording=hostile,
        failed=3,
        qrels=people,
    )
    out = folder / "report.html"
    ended = CliRunner().invoke(app, ["report", str(store), "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(params=[1280, 400])
def page(browser: Browser, written: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The report opened and unfolded; by then and until the end it must have asked for nothing and said nothing."""
    heard: list[str] = []
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    page.on("request", lambda asked: heard.append(asked.url))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.goto(written.as_uri())
    page.locator("#appendix").click()
    yield page
    assert page.evaluate("typeof window.__pwned") == "undefined"
    assert heard == [written.as_uri()]
    page.close()


def test_planted_texts_are_shown_and_do_nothing(page: Page) -> None:
    assert page.locator("script, img, iframe, link, object, embed, form, [onload], [onerror]").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    seen = page.locator("main").inner_text()
    for agent in AGENTS:
        assert seen.count(agent.replace("\u202e", "\\u202e")) >= 4  # as it is, it would turn the rest of its line round
    assert page.title().startswith(f"{NAME}: ")


def test_the_page_fits_its_window_and_the_rest_scrolls_in_its_table(page: Page) -> None:
    size = page.viewport_size
    assert size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    for table in ("header .scroll > table", ".aligned:not(.grid)", ".grid"):
        cells = page.locator(f"{table} > tbody > tr > th").all()
        assert len(cells) == len(AGENTS)
        assert all((cell.bounding_box() or {})["height"] < 200 for cell in cells)
    assert page.locator(f"header [title={AGENTS[-1]}]").inner_text() == AGENTS[-1]
    assert page.locator("header thead .ticks").first.is_visible()


def test_compare_is_whole_on_paper_and_a_card_for_each_agent_on_a_phone(browser: Browser, written: Path) -> None:
    page = browser.new_page(viewport={"width": 718, "height": 1000})  # A4 without margins of 1 cm
    page.goto(written.as_uri())
    page.locator("#appendix").click()
    page.emulate_media(media="print")
    cut = "[...document.querySelectorAll('#compare .scroll')].map(part => part.scrollWidth - part.clientWidth)"
    assert page.evaluate(cut) == [0, 0]
    titles = page.locator("#compare .aligned thead b")
    assert titles.all_inner_texts() == ["Games", "Mean grade", "nDCG@10", "nDCG@10 by people"]
    assert all(title.is_visible() for title in titles.all())
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 390, "height": 900})
    cards = page.locator("#compare .aligned:not(.grid) > tbody > tr")
    assert cards.count() == len(AGENTS)
    for card in cards.all():
        box = card.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
        marks = [strip.bounding_box() for strip in card.locator("> .strip").all()]
        assert len({mark["y"] for mark in marks if mark}) == len(marks), "the scores stand below each other"
        assert marks[0] is not None
        assert box["y"] <= marks[0]["y"] < box["y"] + box["height"]
    page.close()


def test_the_style_is_applied_and_a_script_would_not_be(browser: Browser, written: Path) -> None:
    page = browser.new_page()
    page.goto(written.as_uri())
    assert page.locator("main").evaluate("main => getComputedStyle(main).maxWidth") == "1216px"
    policy = page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    planted = written.with_name("planted.html")
    text = written.read_text(encoding="utf-8")
    planted.write_text(text.replace("</main>", "<script>window.__pwned=6</script></main>"), encoding="utf-8")
    page.goto(planted.as_uri())
    assert page.evaluate("typeof window.__pwned") == "undefined"
    page.close()


def report(source: Path, out: Path) -> Path:
    ended = CliRunner().invoke(app, ["report", str(source), "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    return out


@pytest.fixture(scope="module")
def memos(played_demo: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a store with every kind of score, of many agents, and of games that a crowd brought."""
    folder = tmp_path_factory.mktemp("memos")
    verdicts = shared / "data" / "llmfao" / "gpt4_verdicts.csv"
    imported = CliRunner().invoke(app, ["import", "verdicts", str(verdicts), "--store", str(folder / "crowd.db")])
    assert imported.exit_code == 0, imported.output
    sources = {
        "demo": played_demo / "tournament.yaml",
        "many": page_store.write(folder / "many.db", agents=50, queries=60, games_per_query=20),
        "crowd": folder / "crowd.db",
    }
    return {name: report(source, folder / f"{name}.html") for name, source in sources.items()}


def printed(page: Page, paper: Literal["A4", "Letter"]) -> list[str]:
    """Text of each page that a printer would get."""
    return [sheet.extract_text() for sheet in PdfReader(io.BytesIO(page.pdf(format=paper))).pages]


@pytest.mark.parametrize("name", ["demo", "many", "crowd", "hostile"])
def test_two_printed_pages_decide_and_the_appendix_follows_if_it_is_open(
    browser: Browser, memos: dict[str, Path], written: Path, name: str
) -> None:
    page = browser.new_page()
    page.goto({**memos, "hostile": written}[name].as_uri())
    headline = page.locator("header .verdict h2").inner_text()
    rests = page.locator("#basis tbody td").all_inner_texts()
    for paper in ("A4", "Letter"):
        memo = printed(page, paper)
        assert 1 <= len(memo) <= 2
        assert sum(len(sheet.split()) for sheet in memo) < 1000
        text = re.sub(r"\s+", "", unicodedata.normalize("NFKC", "".join(memo)))  # the font joins ff
        for part in (headline, "Checks", "What it rests on", "ragleague report ", *rests):
            assert re.sub(r"\s+", "", part) in text
        assert "Appendix" not in text
    page.locator("#appendix").click()
    whole = printed(page, "A4")
    assert len(whole) > len(memo)
    assert [sheet.split()[0] for sheet in whole].index("Leaderboard") <= 2, "on a page of its own"
    page.close()


def test_a_link_of_the_contents_opens_what_it_names_without_a_script(browser: Browser, memos: dict[str, Path]) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(memos["demo"].as_uri())
    assert not page.locator("#trust").is_visible()
    page.locator("#appendix").click()
    contents = page.locator(".appendix nav a")
    idents = [str(link.get_attribute("href")) for link in contents.all()]
    assert all(page.locator(ident).count() == 1 for ident in idents)
    assert {"#trust", "#compare", "#settings", "#terms"} <= set(idents)
    terms = page.locator("#terms dt").all_inner_texts()
    assert "Order noise" in terms
    assert "EXAM-Cover" not in terms, "the memo defines it"
    page.goto(f"{memos['demo'].as_uri()}#trust")
    assert page.locator("#trust").is_visible()
    page.close()


def test_every_number_of_the_memo_is_on_the_pages_too(
    browser: Browser, memos: dict[str, Path], played_demo: Path
) -> None:
    memo = browser.new_page()
    memo.goto(memos["demo"].as_uri())
    names = memo.locator("header tbody th").all_inner_texts()
    parts = memo.locator("header .verdict, header tbody, #doubts, #scores, #opinions").all_inner_texts()
    memo.close()
    text = "\n".join(parts)
    for name in names:  # which may end in a number
        text = text.replace(name, "")
    numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", text))
    assert len(numbers) > 40
    with served(played_demo / "rag-handbook.db") as address:
        page, seen = browser.new_page(), ""
        for path in ("", "compare", "trust"):
            visit(page, f"{address}/{path}")
            for fold in page.locator("summary").all():
                fold.evaluate("fold => fold.parentElement.open = true")
            seen += page.locator("[data-testid=stMain]").inner_text()
        page.close()
    assert numbers - set(re.findall(r"\d[\d,]*(?:\.\d+)?", seen)) == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser: Browser, written: Path, scheme: str) -> None:
    """WCAG 2's contrast of at least 4.5 to 1."""
    page = browser.new_page(color_scheme=scheme)
    page.goto(written.as_uri())
    faint = page.evaluate(_FAINT)
    assert faint == []
    page.close()


_FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = node => {
    for (; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      if (colour[3] > 250) return colour;
    }
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = new Set();
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || node.closest('.unseen, title')) continue;
    const style = getComputedStyle(node), ink = node.closest('svg') ? style.fill : style.color;
    const pair = [light(rgba(ink)), light(ground(node))].sort();
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) faint.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)}`);
  }
  return [...faint];
}"""
