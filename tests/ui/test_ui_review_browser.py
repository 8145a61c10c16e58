"""The page Review in Chromium: every key counts where it was meant, and what annotators see beside the texts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from arena.data.kinds import KINDS, VERDICT, Annotation
from arena.people import tasks
from arena.results.cache import cached_games
from arena.results.nuggets import nugget_results
from arena.results.opinions import judgments_of
from arena.store import Store
from arena.store.annotations import Annotations
from retrieval_eval.data.tables import write_rows
from tests.support.browser import PASSAGE, reader, say_name, served, settle, show_at, until
from tests.support.nugget_store import AGENTS, played_nugget_tournament

QUERIES = [f"q{number}" for number in range(8)]
LEVELS = {0: "<b>invents</b> :smile: $x$", 1: "[stretches](javascript:x)", 2: "*stays*", 3: "cites", 4: "proves"}
TASKS = 6
"""Tasks to judge on each form; every annotator has more."""
SAVE = "Control+Enter"
FORMS: dict[str, tuple[str, list[list[str]], list[Any]]] = {
    "vote": ("verdict", [["1"], ["2"], ["3"]], ["A", "B", "TIE"]),
    "label": ("relevance", [["0"], ["2"], ["1"]], [0, 2, 1]),
    "check": ("support", [["1"], ["3"], ["2"]], [2, 0, 1]),
    "refusals": ("refusals", [["1"], ["3"], ["2"]], [0, 2, 1]),
    "grade": (
        "criteria",
        [[*"2143", SAVE], [*"0440", SAVE], [*"1112", SAVE]],
        [
            dict(zip(("clear", "complete", "faithful", "tone"), grades, strict=True))
            for grades in ((2, 1, 4, 3), (0, 4, 4, 0), (1, 1, 1, 2))
        ],
    ),
    "assess": (
        "nuggets",
        [[*"132", SAVE], [*"211", SAVE], [*"333", SAVE]],
        [
            ["support", "not_support", "partial_support"],
            ["partial_support", "support", "support"],
            ["not_support", "not_support", "not_support"],
        ],
    ),
}
"""By part of the page: the kind, the keys of three tasks in turn, and the values that they mean."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forms")
    said = [{"role": role, "content": f"{role} says {at}"} for at in range(4) for role in ("user", "assistant")]
    asked = [
        {"qid": query, "query": f"What of {query}?", "reference": "It purrs.", "messages": json.dumps(said)}
        for query in QUERIES
    ]
    write_rows(path / "asked.csv", [*asked[0]], asked)
    documents = [
        {
            "qid": query,
            "did": f"{query}-{agent}-{rank}",
            "document": f"Page {rank} by {agent}: it purrs {query}",
            "agent": agent,
            "rank": rank,
        }
        for query in QUERIES
        for agent in AGENTS
        for rank in (1, 2)
    ]
    write_rows(path / "documents.csv", [*documents[0]], documents)
    played_nugget_tournament(
        path,
        queries=QUERIES,
        wording=lambda text: f"{text} [1]." if text.startswith("One says") else text,
        data={"queries": "asked.csv", "answers": "answers.csv", "documents": "documents.csv"},
        retrieval={"judge": "words"},
        pairwise={
            "judges": "words",
            "documents": {"threshold": 0},
            "factors": "what helps",
            "review": "Ignore <i>style</i>.",
        },
        criteria={
            "judge": "words",
            "scale": [0, 4],
            "names": {
                "clear": "read once",
                "complete": "",
                "faithful": {"needs": ["documents"], "levels": LEVELS},
                "tone": "polite",
            },
        },
        support={"judge": "words"},
        refusals={"judge": "words"},
    )
    (path / "bare").mkdir()
    played_nugget_tournament(path / "bare", pairwise={"judges": "words"})
    return path


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder / "store.db", folder / "t.yaml") as url:
        yield url


def opened(page: Page, address: str, view: str, name: str) -> None:
    say_name(page.context, address, name)
    page.goto(f"{address}/review?view={view}")
    page.get_by_role("button", name="Skip").wait_for()
    settle(page)


def said(folder: Path, name: str) -> list[Annotation]:
    with closing(Store.open(str(folder / "store.db"))) as store:
        return Annotations(store, "nuggets").history(annotator=name)


def queue(folder: Path, kind: str, name: str) -> tasks.TaskQueue:
    """The tasks of an annotator in the order in which they come."""
    with closing(Store.open(str(folder / "store.db"))) as store:
        data = store.dataset("nuggets")
        if kind == VERDICT.name:
            table = cached_games(store, "nuggets")
            return tasks.games({table.key(row)[:3] for row in range(len(table))}, data).queue(name)
        if kind == "nuggets":
            results = nugget_results(store, "nuggets")
            assert results is not None
            return tasks.nuggets(results.banks, data.answers.values()).queue(name)
        judgments = judgments_of(store, "nuggets", kind)
        if kind == "criteria":
            return tasks.answers(dict.fromkeys((one.query_id, one.item) for one in judgments), data).queue(name)
        return tasks.judged(KINDS[kind], judgments, data).queue(name)


@pytest.mark.parametrize("apart", [100, 150, 250, 400])
@pytest.mark.parametrize("view", FORMS)
def test_each_key_counts_for_what_waited_when_it_was_pressed_at_any_speed(
    page: Page, address: str, folder: Path, view: str, apart: int
) -> None:
    kind, keys, values = FORMS[view]
    name = f"{view} {apart}"
    opened(page, address, view, name)
    for at in range(TASKS):
        for key in keys[at % 3]:
            page.keyboard.press(key)
            page.wait_for_timeout(apart)
    page.wait_for_selector(f"text={TASKS} of ")
    expected = []
    for at, task in enumerate(queue(folder, kind, name)[:TASKS]):
        value = values[at % 3]
        expected += task.annotations(name, value if kind == "nuggets" else [value])
    landed = [(one.query_id, one.item, one.other, one.texts, one.value) for one in said(folder, name)]
    assert landed == [(one.query_id, one.item, one.other, one.texts, one.value) for one in expected]


def test_the_keys_of_every_form_are_tried() -> None:
    assert {kind.form.view for kind in KINDS.values() if kind.form is not None} == set(FORMS)


def test_skip_and_undo_keep_their_place_among_the_keys(page: Page, address: str, folder: Path) -> None:
    opened(page, address, "vote", "sam")
    for key in "1s2u31":
        page.keyboard.press(key)
        page.wait_for_timeout(60)
    page.wait_for_selector("text=3 of 8 queries voted on, 1 skipped")
    first, second, third, fourth = queue(folder, "verdict", "sam")[:4]
    assert [(one.query_id, one.value) for one in said(folder, "sam")] == [
        (first.query_id, "A"),
        (second.query_id, None),
        (third.query_id, "B"),
        (third.query_id, None),
        (third.query_id, "TIE"),
        (fourth.query_id, "A"),
    ]


def test_keys_pressed_after_one_that_could_not_be_saved_are_told_and_not_used(
    page: Page, address: str, folder: Path
) -> None:
    opened(page, address, "vote", "lou")
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for key in "123":
            page.keyboard.press(key)
            page.wait_for_timeout(100)
        page.wait_for_selector("text=another program keeps it locked")
        expect(page.get_by_role("status").filter(has_text="2 later presses were not used")).to_be_visible()
    settle(page)
    page.keyboard.press("2")
    page.wait_for_selector("text=1 of 8 queries voted on")
    assert [one.value for one in said(folder, "lou")] == ["B"]


def test_keys_choose_in_rows_after_a_click_on_an_option_and_not_in_a_field(
    page: Page, address: str, folder: Path
) -> None:
    opened(page, address, "grade", "kim")
    page.locator("[role=radiogroup]").nth(1).locator("label").nth(3).click()
    page.keyboard.press("Control+1")  # the browser's own
    for key in "204":
        page.keyboard.press(key)
    page.get_by_role("textbox", name="Your name or initials").focus()
    page.keyboard.type("1")
    page.keyboard.press("Backspace")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector("text=1 of ")
    assert said(folder, "kim")[0].value == {"clear": 2, "complete": 3, "faithful": 0, "tone": 4}


def test_an_address_with_a_name_neither_sets_nor_changes_who_judges_and_is_passed_on_by_no_link(
    page: Page, address: str, folder: Path
) -> None:
    page.goto(f"{address}/review?view=vote&annotator=bob")
    page.wait_for_selector("text=Enter your name or initials")
    field = page.get_by_role("textbox", name="Your name or initials")
    assert field.input_value() == ""
    field.fill("é & ü")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Skip").wait_for()
    settle(page)
    page.goto(f"{address}/review?view=vote&annotator=bob")
    page.get_by_role("button", name="Skip").wait_for()
    settle(page)
    assert field.input_value() == "é & ü", "the browser knows it"
    page.keyboard.press("3")
    page.wait_for_selector("text=1 of 8 queries voted on")
    assert [one.value for one in said(folder, "é & ü")] == ["TIE"]
    assert said(folder, "bob") == []
    page.get_by_role("navigation", name="Parts").get_by_role("link", name="Grade").click()
    page.wait_for_selector("text=0 of 24 answers graded")
    settle(page)
    assert field.input_value() == "é & ü"
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_selector("h1:text-is('Leaderboard')")
    settle(page)
    page.goto(f"{address}/?annotator=bob&tournament=nuggets")
    settle(page)
    links = page.locator("main a[href]").evaluate_all("all => all.map(one => one.href)")
    assert links
    assert not [link for link in [*links, page.url] if "annotator" in parse_qs(urlsplit(link).query)]
    page.context.clear_cookies()
    page.goto(f"{address}/review?view=vote")
    page.wait_for_selector("text=Enter your name or initials")


@pytest.mark.parametrize(("view", "documents"), [("vote", 4), ("grade", 2)])
def test_a_drawer_beside_the_answers_shows_what_the_judge_reads_and_stays_as_it_is_left(
    page: Page, address: str, view: str, documents: int
) -> None:
    opened(page, address, view, "dan")
    drawer = page.locator(".st-key-drawer")
    expect(drawer.get_by_text(f"Conversation, reference, {documents} documents")).to_be_visible()
    for words in ("Earlier: 4 messages", "user says 2", "assistant says 3", "Reference answer", "It purrs."):
        expect(drawer.get_by_text(words, exact=True)).to_be_visible()
    assert drawer.locator(PASSAGE).count() == documents + 1
    answer = page.locator(".st-key-side-1").bounding_box()
    beside = drawer.bounding_box()
    assert answer is not None
    assert beside is not None
    assert beside["x"] > answer["x"] + answer["width"]
    assert abs(beside["y"] - answer["y"]) < 60
    page.keyboard.press("s")
    page.wait_for_selector("text=1 skipped")
    settle(page)
    expect(drawer.get_by_text("assistant says 3", exact=True)).to_be_visible()
    drawer.locator("summary").first.click()
    until(page, lambda: drawer.locator(PASSAGE).count() == 0)
    page.keyboard.press("s")
    page.wait_for_selector("text=2 skipped")
    settle(page)
    assert drawer.locator(PASSAGE).count() == 0
    assert drawer.count() == 1


def test_meanings_stand_on_the_options_as_they_were_written_and_instructions_above(page: Page, address: str) -> None:
    opened(page, address, "grade", "mia")
    options = page.locator("[role=radiogroup]").nth(2).locator("label")
    drawn = [words.replace("\u200b", "") for words in options.all_inner_texts()]
    assert drawn == [f"{grade}: {meaning}" for grade, meaning in LEVELS.items()]
    assert options.locator("a, b, em, .katex").count() == 0
    opened(page, address, "vote", "mia")
    page.get_by_text("Ignore <i>style</i>.", exact=True).wait_for()
    opened(page, address, "label", "mia")
    assert page.get_by_role("button", name="2: very relevant").is_visible()


def test_review_leads_to_no_results_and_lists_only_tasks_that_exist(
    folder: Path, page: Page, browser: Browser, address: str
) -> None:
    opened(page, address, "vote", "eva")
    assert links(page, "Parts of this page") == ["Vote", "Label", "Grade", "Assess", "Check", "Refusals"]
    assert links(page, "Pages") == ["Back to the results"]
    voter = reader(browser).new_page()
    with served(folder / "bare" / "store.db", None, "--without-sign-in", "voter") as url:
        say_name(voter.context, url, "eva")
        voter.goto(f"{url}/review?view=grade")
        voter.wait_for_selector("text=The address asks for something that is not here")
        settle(voter)
        assert links(voter, "Parts of this page") == ["Vote", "Assess"]
        assert links(voter, "Pages") == []
        assert voter.locator("[data-testid=stCode]").count() == 0
        voter.close()


def links(page: Page, menu: str) -> list[str]:
    return page.get_by_role("navigation", name=menu).get_by_role("link").all_inner_texts()


def test_a_reload_goes_on_where_it_was_with_what_was_chosen(page: Page, address: str, folder: Path) -> None:
    opened(page, address, "grade", "pia")
    for key in [*"2143", SAVE]:
        page.keyboard.press(key)
    page.wait_for_selector("text=1 of 24 answers graded")
    settle(page)
    page.keyboard.press("u")
    page.wait_for_selector("text=0 of 24 answers graded, 1 skipped")
    settle(page)
    shown = page.locator(".st-key-side-1").inner_text()
    page.locator("[role=radiogroup]").first.locator("input").nth(4).evaluate("input => input.click()")
    page.reload()
    page.get_by_role("button", name="Skip").wait_for()
    settle(page)
    assert page.locator(".st-key-side-1").inner_text() == shown, "the task that was taken back"
    until(page, lambda: page.locator("[role=radiogroup] input:checked").count() == 4)
    page.keyboard.press(SAVE)
    page.wait_for_selector("text=1 of 24 answers graded")
    settle(page)
    page.keyboard.press("3")
    page.keyboard.press("0")
    page.reload()
    page.get_by_role("button", name="Skip").wait_for()
    settle(page)
    until(page, lambda: page.locator("[role=radiogroup] input:checked").count() == 2)
    for key in ("1", "2", SAVE):
        page.keyboard.press(key)
    page.wait_for_selector("text=2 of 24 answers graded")
    values = [one.value for one in said(folder, "pia")]
    grades = ("clear", "complete", "faithful", "tone")
    assert values[-2:] == [dict(zip(grades, row, strict=True)) for row in ((4, 1, 4, 3), (3, 0, 1, 2))]
    page.get_by_role("link", name="Back to the results").click()
    page.wait_for_selector("h1:text-is('Leaderboard')")
    settle(page)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Review").click()
    page.wait_for_selector("text=2 of 24 answers graded")
    settle(page)
    page.keyboard.press("4")
    page.get_by_role("navigation", name="Parts").get_by_role("link", name="Vote").click()
    page.wait_for_selector("text=0 of 8 queries voted on")
    settle(page)
    page.go_back()
    page.wait_for_selector("text=2 of 24 answers graded")
    until(page, lambda: page.locator("[role=radiogroup] input:checked").count() == 1)


TOUCHED = (
    "main button, main a, main summary, main select, main .which label, main [data-testid=stCheckbox] label, "
    "main [data-testid=stRadioOption], main [data-testid=stTextInputRootElement]"
)


@pytest.mark.parametrize("view", FORMS)
def test_a_form_on_a_phone_is_wide_enough_for_fingers_and_cuts_no_text(page: Page, address: str, view: str) -> None:
    opened(page, address, view, "ida")
    show_at(page, 390)
    small = page.locator(TOUCHED).evaluate_all(
        "all => all.filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 43.9)"
        ".map(one => one.textContent)"
    )
    assert small == []
    cut = page.locator("main :is(p, button, label, summary, h1)").evaluate_all(
        "all => all.filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1"
        " && getComputedStyle(one).overflow !== 'visible').map(one => one.textContent)"
    )
    assert cut == []
    tiny = page.locator("main").evaluate_all(
        "all => all.flatMap(main => [...main.querySelectorAll('*')]).filter(one => one.checkVisibility()"
        " && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())"
        " && parseFloat(getComputedStyle(one).fontSize) < 12.5).map(one => one.textContent)"
    )
    assert tiny == []
