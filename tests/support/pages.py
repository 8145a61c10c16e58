"""Single pages in Streamlit's own test runner, which knows no addresses, and what they are opened on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pytest
import yaml
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from arena.config.schema import Config
from ui.data import LOCATION_VARIABLE
from ui.editing import CONFIG_VARIABLE

_COOKIES: dict[str, str] = {}
ContextProxy.cookies = property(lambda _: _COOKIES)  # type: ignore[method-assign]  # the test runner has no browser

# Each run of the test runner would look through everything that is installed.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def config_file(config: Config) -> Path:
    """Write a configuration as ``t.yaml`` beside its store."""
    path = Path(config.store).with_name("t.yaml")
    path.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")
    return path


def start_on(monkeypatch: pytest.MonkeyPatch, config: Config, *, editable: bool = False) -> None:
    """Let the pages read the store of a configuration, and edit what that names."""
    monkeypatch.setenv(LOCATION_VARIABLE, config.store)
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    if editable:
        monkeypatch.setenv(CONFIG_VARIABLE, str(config_file(config)))


def page(name: str, *, annotator: str = "", **address: str) -> AppTest:
    """A page after its first run, opened by an address that holds these, in the browser of one who said a name."""
    _COOKIES.clear()
    _COOKIES.update({"ragleague-annotator": quote(annotator)} if annotator else {})
    run = AppTest.from_function(_draw, kwargs={"page": name})
    for key, value in address.items():
        run.query_params[key] = value
    run.run(timeout=20)
    assert not run.exception
    return run


def unfolded(run: AppTest, key: str) -> AppTest:
    """The page with an expander open, whose content is drawn only then."""
    run.session_state[key] = True
    run.run(timeout=20)
    assert not run.exception
    return run


def press(run: AppTest, label: str) -> AppTest:
    """The page after its only button of this name was pressed."""
    (button,) = (button for button in run.button if button.label == label)
    after = button.click().run(timeout=20)
    assert not after.exception
    return after


def shown(run: AppTest) -> str:
    """All words outside tables and fields."""
    kinds = (run.header, run.subheader, run.text, run.caption, run.info, run.warning, run.error, run.success)
    words = [element.value for kind in (*kinds, run.markdown) for element in kind]
    return "\n".join([*words, *(unescape(re.sub(r"(<[^>]+>)+", "\n", own.proto.body)) for own in run.get("html"))])


def tables(run: AppTest) -> list[pd.DataFrame]:
    """All tables, in the order of the page; numbers without what is around them."""
    found = []
    for node in _nodes(run.main):
        if node.type == "html":
            body = re.sub(r'<div class="picture drawn">.*?</div></div>', "", node.proto.body)
            body = re.sub(r'<td class="plot"[^>]*></td>', "", body)
            found += [_frame(table) for table in re.findall(r"<table>\n(.*?)</table>", body, re.DOTALL)]
    return found


def _frame(table: str) -> pd.DataFrame:
    heading, *lines = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    names = [unescape(name) for name in re.findall(r"<button type=button>(.*?)</button>", heading)]
    rows = [re.findall(r"<(t[hd][^>]*)>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
    return pd.DataFrame([dict(zip(names, (_cell(*cell) for cell in row), strict=True)) for row in rows])


def _cell(tag: str, written: str) -> Any:
    said = unescape(re.sub(r"<[^>]+>", "", written))  # a cell may lead somewhere
    number = re.fullmatch(r"([+-]?)\$?([\d.,]+)[%a-z ]*", said)
    if "data-value" in tag and number is not None:
        return float(number[1] + number[2].replace(",", ""))
    return None if said == "-" else said


def table(run: AppTest, *columns: str) -> Any:
    """The only table that has these columns."""
    (found,) = (own for own in tables(run) if set(columns) <= set(own))
    return found


def titled(run: AppTest) -> Iterator[tuple[str, str]]:
    """HTML of the page with the title that stands above it."""
    title = ""
    for node in _nodes(run.main):
        if node.type in ("header", "subheader"):
            title = node.value
        elif node.type == "html":
            strong = re.fullmatch(r'<[^>]*class="[^"]*strong[^"]*"[^>]*>(.*?)</[^>]*>.*', node.proto.body, re.DOTALL)
            title = unescape(re.sub(r"<[^>]+>", "", strong[1])) if strong else title
            yield title, node.proto.body


def sent(run: AppTest) -> str:
    """Everything that a page sends to the browser, tables among it."""
    parts = [node.proto.SerializeToString() for node in _nodes(run.main) if hasattr(node, "proto")]
    return b"\n".join(parts).decode("utf-8", "replace")


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.children.values():
        yield node
        if hasattr(node, "children"):
            yield from _nodes(node)


def _draw(page: str) -> None:
    import streamlit as st
    from msgspec.structs import replace

    from ui import data
    from ui.address import GROUP, say_what_is_unknown
    from ui.app import PAGES

    shown = {name: show for one in PAGES for name, show in one.views.items()}
    version, names = data.tournaments()
    source = data.Source(data.location(), version, names[-1]) if names else None
    if source is not None and GROUP in st.query_params:
        group, by = data.groups(source)[st.query_params[GROUP]]
        source = replace(source, group=group, by=by)
    shown[page](source)
    say_what_is_unknown()
