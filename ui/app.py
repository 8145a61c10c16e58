"""The Streamlit application: the menu of pages, and the choice of the tournament and page to draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Final
from urllib.parse import urlencode

import streamlit as st
from msgspec import Struct
from msgspec.structs import replace

from arena.data.dataset import Group
from arena.store.check import damage_behind
from judges.errors import RagleagueError, StoreError
from ui import address, data, editing, onward, sign_in, text
from ui.access import allowed
from ui.views import bank, compare, games, leaderboard, nugget_lists, queries, review, trust, versus, workbench


def main() -> None:
    """Draw the requested page; if the store is damaged, draw a one-line error in its place."""
    pages = [st.Page(partial(_draw, page), title=page.title, url_path=page.address) for page in PAGES]
    requested = st.navigation(pages, position="hidden")
    # If Streamlit ran the page, it would drop parameters of fields that the previous page has too.
    address.forget_fields()
    try:
        _draw(PAGES[pages.index(requested)])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        if (damage := damage_behind()) is None:
            raise
        text.problem("The store cannot be shown.", damage)


class Page(Struct, frozen=True):
    """An entry of the menu.

    Attributes:
        title: the page's title in the menu.
        views: functions that draw the parts of the page, by the parts' names in URLs; the first is the default.
        grouped: whether the page can be limited to one group of queries.
        existing: returns the names of the parts that a tournament has; ``None`` if every tournament has all parts. A
            page with this function is for annotators: it has no links to the other pages, except one back for editors.
    """

    title: str
    views: Mapping[str, Callable[[data.Source], None]]
    grouped: bool = False
    existing: Callable[[data.Source], list[str]] | None = None

    @property
    def address(self) -> str:
        """The page's name in URLs."""
        return self.title.lower()


def _draw(page: Page) -> None:
    title = f"{page.title} · ragleague"
    try:
        st.set_page_config(page_title=title, layout="wide", initial_sidebar_state="collapsed")
        if not sign_in.let_in():
            return
        version, names = _tournaments()
        config = editing.configured()
        requested = st.query_params.get(address.TOURNAMENT)
        name = requested or (config.name if config is not None else next(reversed(names), ""))
        source = data.Source(data.location(), version, name) if name in names else None
        if page.existing is None:
            parts = list(page.views)
        else:
            parts = page.existing(source) if source is not None else [*page.views][:1]
        show = page.views[view := address.view(parts)]
        if source is None:
            _draw_top(page, None, names, parts, view)
            is_unknown = bool(requested) and (config is None or config.name != name)
            _say_what_is_missing(name, names, requested=is_unknown, on_runs=show is workbench.show_runs)
            return
        if address.TOURNAMENT not in st.query_params:
            st.query_params[address.TOURNAMENT] = name
        st.set_page_config(page_title=f"{page.title} · {text.clipped(name, 40)} · ragleague")
        group, by = _draw_top(page, source, names, parts, view)
        if page.existing is not None:
            st.session_state[_PART] = name, view
        elif config is not None and config.name == name and (remark := editing.remark_on_stored(version)):
            text.quiet(remark)
        unknown = st.container()
        show(replace(source, group=group, by=by))
        with unknown:
            address.say_what_is_unknown()
    except RagleagueError as error:
        text.problem("The store cannot be shown.", error)


def _say_what_is_missing(name: str, names: Sequence[str], *, requested: bool, on_runs: bool) -> None:
    """Draw a message that the store does not hold the tournament in the URL or configuration, or that it holds none."""
    if requested:
        st.error("The address asks for a tournament that this store does not hold.", icon=":material/error:")
        text.plain(name)
    elif on_runs:
        workbench.show_runs(None)
    else:
        text.strong(name)
        others = " Run it, or choose another above." if names else ""
        words = "This tournament has not run yet." if name else "This store holds no tournament yet."
        onward.run(f"{words}{others}", data.Source("", (0, 0, 0), name))


def _tournaments() -> tuple[tuple[int, int, int], list[str]]:
    """The store's version and the names of its tournaments.

    If the store cannot be read now, this function draws the error and returns the last known version and names, so that
    the page stays and people do not lose what they have typed.
    """
    try:
        return data.tournaments()
    except StoreError as error:
        if data.location() not in data.LAST_READ:
            raise
        text.problem("The store cannot be read now. This page shows what it held before.", error)
        return data.LAST_READ[data.location()]


def _draw_top(
    page: Page, source: data.Source | None, names: Sequence[str], parts: Sequence[str], view: str
) -> tuple[Group | None, str]:
    """Draw the menu, the page's title, and fields for the tournament and the groups of queries.

    Returns:
        The selected group of queries, and the column by whose groups they are compared.
    """
    shown = source or data.Source("", (0, 0, 0), "")
    last_of, last = st.session_state.get(_PART, ("", ""))
    entries = []
    for entry in PAGES:
        part = last if entry.existing is not None and last_of == shown.tournament else ""
        entries.append((entry.title, address.link(entry.address, shown, view=part), entry is page))
    if page.existing is not None:  # annotators are to see no results; whoever runs the pages may go back
        entries = [("Back to the results", entries[0][1], False)] if allowed("edit") else []
    part_links = [
        (
            "Overview" if part == page.address else part.capitalize(),
            address.link(page.address, shown, view=part),
            part == view,
        )
        for part in (parts if len(parts) > 1 else ())
    ]
    choices, groups, requested = [], dict[str, tuple[Group | None, str]](), ""
    if len(names) > (source is not None):
        options = [(name, f"?{urlencode({address.TOURNAMENT: name, 'view': view})}") for name in names]
        choices.append(_choice("Tournament", options, shown.tournament))
    if source is not None and page.grouped:
        groups = data.groups(source)
        requested = st.query_params.get(address.GROUP, "")
        address.note_unless("group of queries", address.GROUP, groups.__contains__)
        if groups:
            parameters = {name: value for name, value in st.query_params.to_dict().items() if name != address.GROUP}
            options = [("all", f"?{urlencode(parameters)}")]
            options += [(name, f"?{urlencode({**parameters, address.GROUP: name})}") for name in groups]
            choices.append(_choice("Queries", options, requested if requested in groups else "all"))
    elif address.GROUP in st.query_params:
        chosen = text.clipped(st.query_params[address.GROUP], 60)
        choices.append(f'<span class="whole">All queries, not only {escape(chosen)}</span>')
    st.html(
        f'<div class="top">{_menu("Pages", entries)}<div><h1>{page.title}</h1>'
        f"{_menu('Parts of this page', part_links)}{''.join(choices)}</div></div>"
    )
    return groups.get(requested, (None, ""))


def _menu(label: str, entries: Sequence[tuple[str, str, bool]]) -> str:
    links = "".join(
        f'<a href="{escape(link)}"{" aria-current=page" * is_here}>{title}</a>' for title, link, is_here in entries
    )
    return f'<nav aria-label="{label}">{links}</nav>' if entries else ""


def _choice(label: str, options: Sequence[tuple[str, str]], chosen: str) -> str:
    """HTML of a native select field whose options are links; ``page.js`` opens the chosen link."""
    if chosen not in dict(options):
        options = [("", ""), *options]
    option_tags = "".join(
        f'<option value="{escape(link)}"{" selected" * (name == chosen)}>{escape(text.clipped(name, 60))}</option>'
        for name, link in options
    )
    return f'<label>{label} <select class="choice">{option_tags}</select></label>'


_PART: Final = "part-for-annotators"
"""Session key of the tournament and the Review page's part that were shown last; the menu leads back to them."""
PAGES: Final = (
    Page("Leaderboard", {"leaderboard": leaderboard.show}, grouped=True),
    Page("Compare", {"compare": compare.show, "versus": versus.show}, grouped=True),
    Page("Queries", {"queries": queries.show, "games": games.show}, grouped=True),
    Page(
        "Trust",
        {
            "checks": trust.checks,
            "card": trust.card,
            "people": trust.people,
            "corrected": trust.corrected,
            "style": trust.style,
            "disagreements": trust.disagreements,
        },
    ),
    Page("Review", review.VIEWS, existing=review.existing),
    Page(
        "Workbench",
        {
            "runs": workbench.show_runs,
            "bank": bank.show_bank,
            "nuggets": nugget_lists.show_nuggets,
            "history": workbench.show_history,
        },
    ),
)
"""The pages in the order of the menu; the first is the default."""


if __name__ == "__main__":
    main()
