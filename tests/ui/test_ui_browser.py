"""The pages in a real Chromium, on one store full of hostile texts: reading, voting and the addresses of pages."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from arena.data.kinds import Annotation
from arena.present.numbers import COUNT, PERCENT, POINTS
from arena.results.ratings import leaderboard
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.data.tables import write_rows
from tests.support.browser import (
    INERT,
    PASSAGE,
    answered,
    opened_with,
    reader,
    say_name,
    served,
    settle,
    show_at,
    until,
    visit,
)
from tests.support.nugget_store import AGENTS as NUGGET_AGENTS
from tests.support.nugget_store import played_nugget_tournament
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store
from ui.app import PAGES as MENU

PLANTED = (
    "<script>window.__pwned=1</script>",
    '<img src=x onerror="window.__pwned=2">',
    "![x](http://127.0.0.1:9/leak.png)",
    "[link](javascript:window.__pwned=3)",
    "<style>main { display: none }</style>",
    "$x^2$ :smile: :red[red] www.example.com <b>b</b>",
)
MARKDOWN = "\n| a | b |\n|---|---|\n| > | - |\n\n**bold** `code`\n"
"""In every text beside them; a passage shows it formatted, everything else as it is."""
AGENTS = (
    "**x** <b>b</b>",
    "![x](http://127.0.0.1:9/leak.png)",
    ":smile: $x$ [l](javascript:window.__pwned=4)",
    '<img src=x onerror="window.__pwned=5">',
)
HUGE = "q05"
"""The query to which every answer is a megabyte without a space."""


ITEM = f"{' '.join(PLANTED)} Which one purrs?"
KINDS = ("easy", "<b>hard</b> $x$")
VISITED = {"compare", "games", "vote", "label", "assess", "bank"}
"""Parts of pages that tests of their own open."""
OTHERS = [f"{one.address}?view={view}" for one in MENU for view in one.views if view not in VISITED]
OTHERS += [
    f"queries?query={HUGE}",
    f"queries?agent={quote(AGENTS[3])}",
    "compare?part=Groups&tables=true",
    "queries?view=games&more=true",
]
VOTED, FEW = 8, 2
"""Queries of the tournaments in which people vote."""


def hostile(kind: str, text: str) -> str:
    long = "x" * 1_000_000 if kind == "answer" and HUGE in text else ""
    return "\n".join((text, *PLANTED, MARKDOWN, long))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A YAML file's tournament, with nuggets and an exam; its store holds others, newer ones."""
    path = tmp_path_factory.mktemp("hostile")
    items = [("q1", ITEM, None), ("q1", "Which cat? " * 300, None), ("q1", "HIDDEN?", "true")]
    items += [("q2", f"Item {number}?", None) for number in range(120)]
    columns = ("qid", "question", "secret")
    write_rows(path / "items.csv", columns, [dict(zip(columns, item, strict=True)) for item in items])
    played_nugget_tournament(
        path,
        agents=(*NUGGET_AGENTS, "<b>v</b>"),
        wording=lambda text: hostile("", text).rstrip(),
        pairwise={"judges": "words"},
        exam={"judge": "words", "bank": "items.csv"},
    )
    store = path / "store.db"
    write_store(
        store, name="wide", agents=[f"agent-{at}" for at in range(15)], queries=1, criteria=False, wording=hostile
    )
    write_store(store, name="few", queries=FEW, wording=hostile)
    write_store(store, name="plain", queries=VOTED, wording=hostile, kinds=KINDS, priced=True)
    people = {"q01": {"q01-d0": 7, "q01-common": 7}}
    write_store(store, agents=AGENTS, wording=hostile, failed=3, unasked=5, qrels=people)
    add_people(store, "sample")
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with opened_with(folder / "t.yaml") as url:
        yield url


def cells(page: Page, number: int) -> list[list[str]]:
    """A table's cells, as screen readers are given them."""
    table = page.locator(".stHtml > .scroll").nth(number)
    table.locator("td").first.wait_for(state="attached")
    return table.evaluate(
        "table => [...table.querySelectorAll('tr')].filter(row => !row.closest('.drawn, tfoot'))"
        ".map(r => [...r.children].filter(c => !c.matches('.plot')).map(c => c.textContent))"
    )


def texts(page: Page) -> str:
    """All texts from outside; they hold no element of their own, but passages tables and the like."""
    assert page.locator(f"{INERT} :is(a, img, b, strong, em, code, script, .katex)").count() == 0
    formatted = "div.raw, p, mark, br, table, thead, tbody, tr, th, td, strong, code"
    assert page.locator(f"{PASSAGE} :not({formatted})").count() == 0
    return "\n".join(page.locator(f"{INERT}, {PASSAGE}").all_inner_texts())


def fits_any_window(page: Page) -> None:
    for width in (1280, 390):
        show_at(page, width)


def test_the_overview_s_numbers_are_the_leaderboard_s(page: Page, address: str, folder: Path) -> None:
    with closing(Store.open(str(folder / "store.db"))) as opened:
        board = leaderboard(opened, "sample")
    assert board.ratings is not None
    visit(page, f"{address}/?tournament=sample")
    heading, *lines = cells(page, 0)
    assert heading[:5] == ["Agent", "Group", "To first", "Ranks", "Win rate"]
    behind = {row.agent: row.bt - board.ratings.by_rank[0].bt for row in board.ratings.agents}
    for line, row in zip(lines, board.ratings.agents, strict=True):
        shown = dict(zip(heading, line, strict=True))
        assert shown["Agent"] == row.agent
        assert shown["Ranks"] == COUNT.between(row.rank_low, row.rank_high)
        assert shown["To first"].split(" (")[0] == POINTS.write(behind[row.agent])
        assert shown["Group"] == row.group
        assert shown["Win rate"] == PERCENT.write((row.wins + row.ties / 2) / row.games)
    assert "8 of 252 judgments are missing" in page.locator("[data-testid=stAlert]").inner_text()
    fits_any_window(page)
    page.get_by_role("link", name=board.ratings.agents[0].agent, exact=True).click()
    page.wait_for_url("**/queries?tournament=sample&agent=*")


def test_planted_texts_of_a_game_show_as_they_are(page: Page, address: str) -> None:
    visit(page, f"{address}/queries?tournament=sample&view=games")
    page.locator(".stHtml > .scroll td a").nth(1).click()
    page.wait_for_selector("text=What the judge said")
    settle(page)
    page.get_by_text("The text").first.click()
    page.get_by_text("The whole reply").first.click()
    page.wait_for_selector("text=tells of notice periods")
    page.wait_for_selector("text=tokens read")
    settle(page)
    seen = texts(page)
    for planted in PLANTED:
        # The query, two answers, two reasons, three titles, three label reasons, a document's text and a reply.
        assert seen.count(planted) >= 13
    for agent in sorted(AGENTS)[:2]:
        assert agent in seen
    fits_any_window(page)


def test_planted_names_in_the_figure_show_as_they_are_and_each_mark_and_cell_leads_on(page: Page, address: str) -> None:
    visit(page, f"{address}/compare?tournament=sample")
    strips, grid = (page.locator(f".aligned{kind} > tbody > tr") for kind in (":not(.grid)", ".grid"))
    named = strips.locator("> th a").all_inner_texts()
    assert sorted(named) == sorted(AGENTS)
    told = grid.locator("> td[title]").first.get_attribute("title")
    assert told is not None
    assert told.startswith(f"{named[0]} against {named[1]}: won ")
    assert page.locator(".cells :is(img, script, tbody i:not(.ticks > i))").count() == 0
    fits_any_window(page)
    for at, agent in enumerate(named):
        own = {"tournament": ["sample"], "agent": [agent]}
        marks = [fields(mark) for mark in strips.nth(at).locator("> th a, > .strip a").all()]
        assert len(marks) >= 3, "the name, the rating and another score"
        assert all(mark == own for mark in marks)
        opponents = [{"opponent": [other], "view": ["games"]} for other in named if other != agent]
        assert [fields(cell) for cell in grid.nth(at).locator("> td a").all()] == [own | more for more in opponents]
    grid.nth(1).locator("> td a").last.click()
    page.wait_for_selector("text=12 games")
    settle(page)
    assert all({named[1], named[3]} <= {*line} for line in cells(page, 0)[1:])
    page.go_back()
    strips.nth(2).locator(".strip a").last.click()
    page.wait_for_selector("text=Worst queries")
    assert page.locator(".said.lead").first.inner_text() == named[2]


def fields(link: Locator) -> dict[str, list[str]]:
    """What an address of a page of queries asks for."""
    url = urlsplit(link.get_attribute("href") or "")
    assert url.path == "queries"
    return parse_qs(url.query)


@pytest.mark.parametrize("path", ["compare?tournament=plain&part=Two+scores", "?tournament=plain"])
def test_a_dot_of_a_chart_leads_to_its_agent(page: Page, address: str, path: str) -> None:
    visit(page, f"{address}/{path}")
    page.wait_for_selector(".picture.chart svg circle")
    dot = page.locator(".picture.chart svg a").first
    tooltip = dot.locator("title").text_content()
    dot.locator("circle").click()
    page.wait_for_selector("text=Worst queries")
    assert page.locator(".said.lead").first.inner_text() in str(tooltip)


def test_a_cell_among_many_agents_leads_to_the_games_of_its_row_and_column(page: Page, address: str) -> None:
    visit(page, f"{address}/compare?tournament=wide")
    named = page.locator(".grid th[scope=row] a").all_inner_texts()
    page.locator(".grid > tbody > tr").nth(3).locator("> td").nth(9).click()
    page.wait_for_selector('text="1 game"')
    settle(page)
    assert {named[3], named[9]} <= {*cells(page, 0)[1]}


def test_a_click_on_a_heading_sorts_by_the_numbers_behind_the_cells_also_after_a_filter(
    page: Page, address: str
) -> None:
    visit(page, f"{address}/?tournament=sample")
    heading, *lines = cells(page, 0)
    at = heading.index("To first")

    def ratings(lines: list[list[str]]) -> list[float]:
        return [float(line[at].split()[0].replace(",", "")) for line in lines]

    rated = ratings(lines)
    assert rated == sorted(rated, reverse=True)
    for expected in (sorted(rated), sorted(rated, reverse=True), rated):
        page.locator(".stHtml > .scroll").first.get_by_role("button", name="To first").click()
        assert ratings(cells(page, 0)[1:]) == expected
    visit(page, f"{address}/compare?tournament=sample&tables=true")
    count = page.locator(".stHtml > .scroll").count()
    (at,) = [at for at in range(count) if {"Labels of", "nDCG@10"} <= {*cells(page, at)[0]}]
    page.locator(".stHtml > .scroll").nth(at).get_by_role("button", name="nDCG@10").click()
    page.locator(".st-key-retrieval-filter input").fill("the judge")
    page.keyboard.press("Enter")
    until(page, lambda: {line[1] for line in cells(page, at)[1:]} == {"the judge"})
    settle(page)
    shown = [float(line[2]) for line in cells(page, at)[1:]]
    assert shown == sorted(shown)
    assert len(set(shown)) == len(AGENTS)


def test_a_cell_and_a_row_lead_to_games_and_queries_and_back_leads_to_where_they_were_clicked(
    page: Page, address: str
) -> None:
    visit(page, f"{address}/queries?tournament=plain&score=Mean+grade")
    page.get_by_role("link", name="q03: ").click()
    page.wait_for_selector("text=Verdicts")
    assert parse_qs(urlsplit(page.url).query) == {"tournament": ["plain"], "query": ["q03"]}
    page.go_back()
    page.wait_for_selector("text=blue above the mean")
    assert "score=Mean" in page.url
    page.goto(f"{address}/queries?tournament=plain")
    settle(page)
    page.locator(".cells td a").last.click()
    page.wait_for_selector("text=3 games")
    settle(page)
    page.locator(".stHtml > .scroll td a[href*='game=']").first.click()
    page.wait_for_selector("text=1 of 3")
    settle(page)
    page.get_by_role("link", name="Next game").click()
    page.wait_for_selector("text=2 of 3")
    shown = page.url
    page.reload()
    page.wait_for_selector("text=2 of 3")
    assert page.url == shown
    assert "tournament=plain" in shown
    page.go_back()
    page.wait_for_selector("text=1 of 3")


@pytest.mark.parametrize("path", OTHERS)
def test_planted_texts_do_nothing_on_any_other_page(page: Page, address: str, path: str) -> None:
    say_name(page.context, address, "<b>eve</b>")
    visit(page, f"{address}/{path.removeprefix(MENU[0].address)}&tournament=sample")
    texts(page)


@pytest.mark.parametrize(
    ("path", "ready", "times"),
    [
        ("review?view=vote&tournament=sample", "Skip", 3),  # the query and two answers
        ("review?view=label&tournament=sample", "Skip", 3),  # the query, a title and a document
        ("review?view=assess&tournament=nuggets", "1. it purrs", 5),  # and three nuggets
    ],
)
def test_planted_texts_of_what_people_do_show_as_they_are_and_fit_any_window(
    page: Page, address: str, path: str, ready: str, times: int
) -> None:
    say_name(page.context, address, "<b>eve</b>")
    page.goto(f"{address}/{path}")
    page.wait_for_selector(f"text={ready}")
    settle(page)
    seen = texts(page)
    assert all(seen.count(planted) >= times for planted in PLANTED)
    fits_any_window(page)
    assert page.get_by_role("textbox", name="Your name or initials").input_value() == "<b>eve</b>"
    boxes = page.locator(PASSAGE).all()
    assert max((box.bounding_box() or {"height": 0})["height"] for box in boxes) <= 540


def said(folder: Path, annotator: str, tournament: str = "plain") -> list[Annotation]:
    with closing(Store.open(str(folder / "store.db"))) as opened:
        return Annotations(opened, tournament).history(annotator=annotator)


def press(page: Page, key: str, progress: str) -> None:
    page.keyboard.press(key)
    page.wait_for_selector(f"text={progress}")
    settle(page)


def test_a_person_votes_by_keyboard_and_goes_on_after_a_reload(page: Page, address: str, folder: Path) -> None:
    page.goto(f"{address}/review?view=vote&tournament=plain")
    page.get_by_role("textbox", name="Your name or initials").fill("ann")
    page.keyboard.press("End")
    page.keyboard.type(" s123")  # in the field these are letters and no votes
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=0 of {VOTED} queries voted on")
    settle(page)
    for place, (key, size) in enumerate(zip("123", [(390, 844), (1440, 900), (1280, 900)], strict=True), start=1):
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        for choice in ("Answer 1 is better", "Answer 2 is better", "Neither is better", "Skip"):
            expect(page.get_by_role("button", name=choice)).to_be_in_viewport(ratio=1)
        press(page, key, f"{place} of {VOTED} queries voted on")
        expect(page.get_by_role("status").filter(has_text="Saved")).to_be_in_viewport()
    press(page, "s", "1 skipped")
    page.reload()
    page.wait_for_selector(f"text=3 of {VOTED} queries voted on, 1 skipped")
    assert [own.value for own in said(folder, "ann s123")] == ["A", "B", "TIE", None]


def test_a_double_click_and_a_key_held_down_count_once(page: Page, address: str, folder: Path) -> None:
    say_name(page.context, address, "dora")
    page.goto(f"{address}/review?view=vote&tournament=plain")
    page.wait_for_selector(f"text=0 of {VOTED} queries")
    settle(page)
    page.get_by_role("button", name="Answer 1 is better").dblclick()
    page.wait_for_selector(f"text=1 of {VOTED} queries voted on")
    settle(page)
    assert [own.value for own in said(folder, "dora")] == ["A"]
    page.locator("h1").first.click()
    for _ in range(30):
        page.keyboard.down("3")
        page.wait_for_timeout(40)
    page.keyboard.up("3")
    page.wait_for_selector(f"text=2 of {VOTED} queries voted on")
    settle(page)
    assert [own.value for own in said(folder, "dora")] == ["A", "TIE"]


def shows(page: Page, title: str, tournament: str = "plain", **fields: str) -> None:
    """Wait until the part of a page that its address names shows a tournament, and it says so beside these fields."""
    page.wait_for_function(
        """([title, said]) => {
          const address = new URLSearchParams(location.search);
          const menu = "nav[aria-label='Pages'] a";
          const link = document.querySelector(`${menu}[aria-current], ${menu}:only-child`);
          const carries = (name) => new URL(link.href).searchParams.get(name) === address.get(name);
          const [first, ...parts] = document.querySelectorAll("nav[aria-label='Parts of this page'] a");
          const isNamed = (part) => new URL(part.href).searchParams.get("view") === address.get("view");
          const named = parts.find(isNamed) ?? first;
          return document.querySelector("h1")?.textContent === title
            && (!named || named.ariaCurrent === "page")
            && ["tournament", "group"].every(carries)
            && document.title === `${title} · ${said.tournament} · ragleague`
            && Object.entries(said).every(([name, value]) => address.get(name) === value);
        }""",
        arg=[title, {"tournament": tournament, "group": None, **fields}],
    )
    settle(page)
    chosen = page.locator("select.choice").evaluate_all("all => all.map(one => one.selectedOptions[0].textContent)")
    assert chosen[0] == tournament
    assert chosen[1:] in ([], [fields.get("group", "all")])
    assert page.locator("h1").count() == 1


def test_tournament_and_filters_survive_links_back_and_reload_on_every_page_and_a_new_tab(
    page: Page, address: str
) -> None:
    page.goto(address)
    shows(page, "Leaderboard", "nuggets")  # the YAML file's own
    page.get_by_label("Tournament").select_option("plain")
    shows(page, "Leaderboard")
    page.get_by_label("Queries").select_option(f"kind: {KINDS[1]}")
    kept = {"group": f"kind: {KINDS[1]}"}
    shows(page, "Leaderboard", **kept)
    seen = []
    for entry in MENU:
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name=entry.title)
        if not link.count():  # annotators are led nowhere; who runs the pages goes back
            page.get_by_role("link", name="Back to the results").click()
            shows(page, "Leaderboard", **kept)
            seen.append(("Leaderboard", page.url))
        link.click()
        shows(page, entry.title, **kept)
        seen.append((entry.title, page.url))
        if entry.title == "Queries":
            with page.context.expect_page() as opened:
                link.click(button="middle")
            shows(opened.value, entry.title, **kept)
            opened.value.close()
        for part in page.get_by_role("navigation", name="Parts").get_by_role("link").all()[1:][-1:]:
            new_tab = part.evaluate("link => link.href")
            part.click()
            expect(part).to_have_attribute("aria-current", "page")
            shows(page, entry.title, **kept)
            assert page.url == new_tab
            seen.append((entry.title, page.url))
    to_reload = {"Queries", "Review"}
    for title, url in reversed(seen):
        assert page.url == url
        if title in to_reload:  # loads what a new tab loads
            to_reload.remove(title)
            page.reload()
        shows(page, title, **{name: value for name, value in kept.items() if name in url})
        page.go_back()
    shows(page, "Leaderboard", group=kept["group"])
    page.go_back()
    shows(page, "Leaderboard")
    page.go_back()
    shows(page, "Leaderboard", "nuggets")
    page.go_forward()
    shows(page, "Leaderboard")


def test_back_twice_at_once_leads_to_the_page_before_the_last_and_forward_again(page: Page, address: str) -> None:
    page.goto(f"{address}/trust?view=people&tournament=plain")
    shows(page, "Trust")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workbench").click()
    shows(page, "Workbench")
    page.get_by_role("navigation", name="Parts").get_by_role("link", name="Bank").click()
    shows(page, "Workbench", view="bank")
    for apart in (0, 5, 10):
        page.evaluate("apart => { history.back(); setTimeout(() => history.back(), apart) }", apart)
        shows(page, "Trust", view="people")
        page.go_forward()
        shows(page, "Workbench")
        page.go_forward()
        shows(page, "Workbench", view="bank")


def test_a_server_that_is_away_is_said_at_once_and_refuses_a_press_until_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    store = write_store(tmp_path / "s.db", name="few", queries=FEW)
    page = reader(browser).new_page()
    with served(store) as url:
        say_name(page.context, url, "lee")
        page.goto(f"{url}/review?view=vote")
        page.wait_for_selector(f"text=0 of {FEW} queries voted on")
        settle(page)
        page.locator("h1").click()
    page.wait_for_selector("text=The server does not answer")  # said where the connection ends, not after a wait
    page.keyboard.press("1")
    page.wait_for_selector("text=Not saved: the server does not answer")
    with served(store, port=urlsplit(url).port or 0):
        page.wait_for_selector("text=Your last press was not saved")
        press(page, "1", f"1 of {FEW} queries voted on")
        assert page.locator("#connection").inner_text() == ""
    page.close()
    with closing(Store.open(str(store))) as opened:
        assert [own.value for own in Annotations(opened, "few").history()] == ["A"]


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", None, "101"),
        ("127.0.0.1", "own", "101"),
        ("evil.example", None, "403"),
        ("127.0.0.1", "http://evil.example", "403"),
        ("127.0.0.1", "null", "403"),
    ],
)
def test_the_server_answers_no_foreign_host_name_and_no_foreign_page(
    address: str, host: str, origin: str | None, status: str
) -> None:
    port = int(address.rsplit(":", 1)[1])
    lines = (
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host}:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *([f"Origin: {address if origin == 'own' else origin}"] if origin else []),
    )
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        assert connection.recv(100).decode().split()[1] == status


def test_nothing_but_its_health_is_told_under_a_foreign_name_and_its_metrics_to_nobody(address: str) -> None:
    port = urlsplit(address).port
    for path in ("/", "/queries", "/static/index.html", "/_stcore/health", "/_stcore/host-config", "/auth/login"):
        assert status(address, path, f"127.0.0.1:{port}") in {200, 302}
        assert status(address, path, f"evil.example:{port}") == 421
    assert status(address, "/healthz", "10.0.0.7") == 200, "as a cluster's probes ask"
    for path in ("/_stcore/metrics", "/_stcore/metrics/"):
        assert status(address, path, f"127.0.0.1:{port}") == 404


def status(address: str, path: str, host: str) -> int:
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=10)) as connection:
        connection.request("GET", path, headers={"Host": host})
        return connection.getresponse().status


def test_every_answer_tells_browsers_to_run_no_script_of_a_text_and_health_says_no_more_than_ok(address: str) -> None:
    for path in ("/", "/queries", "/nowhere", "/healthz", "/_stcore/health", "/auth/login", "/oauth2callback"):
        answer, body = answered(address, path)
        policy = dict(rule.split(" ", 1) for rule in answer["Content-Security-Policy"].split("; "))
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert "unsafe" not in policy["script-src"]
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        if path == "/healthz":
            assert body == b"ok\n"
        assert path != "/nowhere" or answer["Location"] == "./?view=nowhere"


def test_a_page_opened_by_its_address_asks_for_nothing_that_is_not_there(browser: Browser, address: str) -> None:
    asked: list[str] = []
    page = reader(browser).new_page()
    page.on("response", lambda response: asked.append(f"{response.status} {urlsplit(response.url).path}"))
    visit(page, f"{address}/compare")
    assert "200 /_stcore/health" in asked
    assert [one for one in asked if not one.startswith(("200", "304"))] == []
    page.close()
