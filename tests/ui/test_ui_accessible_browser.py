"""Every page on long texts, for people who read it otherwise: axe's rules, light and dark, on a desk and on a phone."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from arena.boards.games import address_of, flag
from arena.results.games import GameKey
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.data.tables import write_rows
from tests.support.browser import say_name, served, settle, until
from tests.support.nugget_store import played_nugget_tournament
from tests.support.peoples_words import add_people
from ui.app import PAGES as MENU

FLAGGED = GameKey("q00", "an-agent-with-a-long-name-0", "an-agent-with-a-long-name-1", "words")
GAME = address_of(FLAGGED)
OPEN = {"games": "more", "checks": "passed", "people": "more", "corrected": "numbers", "style": "more"}
OPEN |= {"runs": "stages", "bank": "relevant", "compare": "tables"}
"""Folds of parts of pages, which are looked at open."""
PAGES = ["?more=true"]
PAGES += [f"{page.address}?view={view}&{OPEN.get(view, 'raw')}=true" for page in MENU[1:] for view in page.views]
PAGES += ["queries?query=q00", "queries?agent=an-agent-with-a-long-name-0", "compare?part=Two+scores&tables=true"]
PAGES += [f"queries?view=games&game={quote(GAME)}"]
GRAVE = ("serious", "critical")
FAMILY = "👨\u200d👩\u200d👧\u200d👦"


def long(text: str) -> str:
    """A text that fills more than a window, and cites."""
    return f"{text} [1].\n" + "\n".join(
        f"- point {at} of many, which is said in a sentence of its own" for at in range(40)
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("long")
    queries = [f"q{number:02}" for number in range(12)]
    agents = ["an-agent-with-a-long-name-0", "an-agent-with-a-long-name-1", "a" * 119 + "2", f"{FAMILY * 9} end"]
    columns = ("qid", "did", "document", "agent", "rank")
    rows = [
        (q, f"{q}-{at}", long(f"Document {at}"), agent, at + 1) for q in queries for agent in agents for at in (0, 1)
    ]
    write_rows(folder / "documents.csv", columns, [dict(zip(columns, row, strict=True)) for row in rows])
    items = [{"qid": q, "question": f"What is point {at} of {q}?"} for q in queries for at in range(5)]
    write_rows(folder / "items.csv", ("qid", "question"), items)
    config = played_nugget_tournament(
        folder,
        queries=queries,
        agents=agents,
        wording=long,
        data={"queries": "queries.csv", "answers": "answers.csv", "documents": "documents.csv"},
        retrieval={"judge": "words"},
        pairwise={"judges": "words"},
        criteria={"judge": "words"},
        exam={"judge": "words", "bank": "items.csv"},
        support={"judge": "words"},
        audit={"judge": "words", "canaries": ["empty", "praise"]},
    )
    add_people(folder / "store.db", "nuggets")
    with closing(Store.create(str(folder / "store.db"))) as store:
        Annotations(store, "nuggets").add([flag(FLAGGED, store.dataset("nuggets"), "ann", long("Look"))])
    with served(folder / "store.db", config) as url:
        yield url


@pytest.fixture(scope="module")
def opened(browser: Browser) -> Page:
    """A page on a touch screen under the server's own policy for scripts."""
    context = browser.new_context(viewport={"width": 1440, "height": 844}, has_touch=True, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(20_000)
    return page


MEASURED = """() => {
    const page = document.querySelector("[data-testid=stMain]"), edge = page.getBoundingClientRect().right;
    const faults = [];
    const named = (one) => `${one.tagName} ${one.className}: ${[...one.textContent.trim()].slice(0, 30).join("")}`;
    const isShown = (one) => {
        const box = one.getBoundingClientRect();
        const isSeen = one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
        return isSeen && box.width > 1 && box.height > 1;
    };
    for (const one of page.querySelectorAll("*")) {
        const texts = [...one.childNodes].filter((node) => node.nodeType === 3), text = one.textContent;
        const words = texts.map((node) => node.textContent).join("").trim();
        if (!isShown(one) || one.closest("[data-testid=stIconMaterial], style, script, option, title")) continue;
        const style = getComputedStyle(one), matrix = one.getScreenCTM?.();
        const size = parseFloat(style.fontSize) * (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
        if (words && size < 12.49) faults.push(`${size} px: ${named(one)}`);
        const hides = !["visible", "auto", "scroll"].includes(style.overflowX);
        const cuts = hides && style.display !== "inline" && text.trim() && one.scrollWidth > one.clientWidth + 1;
        const clamps = hides && style.webkitLineClamp !== "none" && text.length <= 240;
        if (cuts || clamps && one.scrollHeight > one.clientHeight + 2) faults.push(`cut: ${named(one)}`);
        const dots = /\\S…$/.test(words) && words.length < 190 && !one.closest(".passage, .top");
        const right = (one.closest("table") ?? one).getBoundingClientRect().right;
        if (dots && edge - right > 80) faults.push(`dots beside room: ${named(one)}`);
    }
    for (const one of page.querySelectorAll("a[href], button, summary, select, label:has(input), [role=combobox]")) {
        const isInText = one.matches("a") && getComputedStyle(one).display === "inline"
            && [...one.parentElement.childNodes].some((node) => node !== one && node.textContent.trim());
        const box = (one.closest("[role=group]:has([role=combobox])") ?? one).getBoundingClientRect();
        if (!isShown(one) || isInText || one.closest("svg") || Math.min(box.width, box.height) >= 43.9) continue;
        faults.push(`${box.width} by ${box.height} for a finger: ${named(one)}`);
    }
    if (page.scrollWidth > page.clientWidth || document.documentElement.scrollWidth > innerWidth)
        faults.push(`${page.scrollWidth} px wide`);
    return [...new Set(faults)];
}"""
"""What hinders reading or touching: small or cut text, dots beside room, small targets, a page that is too wide."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_grave_barrier_keeps_the_policy_and_has_whole_texts_and_targets_for_fingers(
    opened: Page, address: str, name: str
) -> None:
    refused: list[str] = []
    opened.on("console", lambda message: refused.append(message.text) if "Security Policy" in message.text else None)
    opened.emulate_media(color_scheme="light")
    say_name(opened.context, address, "ann")
    opened.set_viewport_size({"width": 1440, "height": 844})
    opened.goto(f"{address}/{name}")
    settle(opened)
    assert opened.evaluate("matchMedia('(pointer: coarse)').matches")
    until(opened, lambda: brightness(opened) > 0.5)
    barriers = grave(opened)
    faults = {f"{width} light": measured(opened, width) for width in (1440, 768, 390)}
    opened.set_viewport_size({"width": 1440, "height": 844})
    turn_dark(opened)
    for _ in range(10):  # the ground turns dark at once, and texts of folds a moment later
        if not (dim := grave(opened, "color-contrast")):
            break
        opened.wait_for_timeout(300)
    assert barriers + dim == [], "nothing but colours differs in the dark"
    faults["390 dark"] = measured(opened, 390)
    assert {where: found for where, found in faults.items() if found} == {}
    assert "u200d" not in opened.content(), "a joined emoji stays joined"
    assert refused == []


def measured(page: Page, width: int) -> list[str]:
    """What hinders reading or touching in a window so wide."""
    page.set_viewport_size({"width": width, "height": 844})
    for _ in range(10):  # it is laid out a moment later
        if not (faults := page.evaluate(MEASURED)):
            break
        page.wait_for_timeout(200)
    return list(faults)


@pytest.mark.parametrize("view", ["vote", "grade", "assess", "check"])
def test_a_long_query_leaves_room_for_what_is_judged_and_no_row_is_cut_by_a_box(
    opened: Page, address: str, view: str
) -> None:
    say_name(opened.context, address, "eva")
    opened.set_viewport_size({"width": 1280, "height": 900})
    opened.goto(f"{address}/review?view={view}")
    settle(opened)
    text, query = opened.locator(".st-key-side-1 .passage"), opened.locator("p.lead[tabindex='0']")
    until(opened, lambda: text.bounding_box() is not None)
    box = text.bounding_box()
    assert box is not None
    assert box["y"] < 600
    assert query.evaluate("one => one.scrollHeight > one.clientHeight"), "the whole query is there to be scrolled"
    rows = opened.locator("[class*='st-key-rows-']").evaluate_all(
        "all => all.filter(one => !['visible', 'clip'].includes(getComputedStyle(one).overflowY)).length"
    )
    assert rows == 0


def test_on_a_phone_heads_and_names_of_the_heat_map_stay_in_sight(opened: Page, address: str) -> None:
    opened.goto(f"{address}/queries?view=queries")
    settle(opened)
    opened.set_viewport_size({"width": 390, "height": 500})
    opened.wait_for_timeout(300)
    places = opened.locator(".picture .scroll").evaluate("""(box) => {
        box.scrollTo(9999, 9999);
        const { left, top } = box.getBoundingClientRect();
        const head = box.querySelector("thead th:last-child").getBoundingClientRect();
        const name = box.querySelector("tbody tr:last-child th").getBoundingClientRect();
        return [box.scrollLeft, box.scrollTop, head.top - top, name.left - left];
    }""")
    assert places[0] > 0
    assert places[1] > 0
    assert places[2:] == pytest.approx([0, 0], abs=5)


def test_a_script_that_a_text_could_plant_would_not_run(opened: Page, address: str) -> None:
    opened.goto(address)
    settle(opened)
    planted = (
        "const s = document.createElement('script'); s.textContent = 'window.__pwned = 1'; document.body.append(s)"
    )
    opened.evaluate(f"() => {{ {planted} }}")
    assert opened.evaluate("typeof window.__pwned") == "undefined"


VISIBLE = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = [];
    while (texts.nextNode()) {
        const holder = texts.currentNode.parentElement, box = holder.getBoundingClientRect();
        if (holder.closest("style, script, option:not(:checked), [data-testid=stIconMaterial]")) continue;
        if (holder.closest("option") || (holder.checkVisibility() && box.right > 0 && box.bottom > 0))
            seen.push(texts.currentNode.textContent);
    }
    return seen.join(" ");
}"""
"""The words that a person sees; not a link that shows itself to the keyboard alone."""


def test_the_demo_s_leaderboard_has_at_most_150_words_besides_figures_before_anything_is_opened(
    opened: Page, played_demo: Path
) -> None:
    with served(played_demo / "rag-handbook.db", played_demo / "tournament.yaml") as url:
        opened.goto(url)
        settle(opened)
        seen = str(opened.evaluate(VISIBLE))
    assert "weak-baseline" in seen
    assert "No language model judged these games" in seen
    words = re.findall(r"\S*[^\W\d_]\S*", seen)
    assert len(words) <= 150, words


def turn_dark(page: Page) -> None:
    """Prefer dark pages; a change that comes while Streamlit draws was once missed, so it is made up to three times."""
    for _ in range(3):
        page.emulate_media(color_scheme="light")
        page.emulate_media(color_scheme="dark")
        with contextlib.suppress(AssertionError):
            until(page, lambda: brightness(page) < 0.5)
            return
    raise AssertionError("the page stays light")


def brightness(page: Page) -> float:
    """Of the page's ground, from 0 (black) to 1 (white)."""
    ground = page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
    return sum(map(int, re.findall(r"\d+", ground)[:3])) / (3 * 255)


def grave(page: Page, *rules: str) -> list[str]:
    chosen = {"runOnly": list(rules)} if rules else {}
    found = Axe().run(page, options={"resultTypes": ["violations"], **chosen}).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found if one["impact"] in GRAVE for node in one["nodes"]]
