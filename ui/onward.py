"""What a page draws when it has nothing to show: why, and the button or the command that leads on."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import streamlit as st

from arena.config.schema import Config
from arena.data.kinds import KINDS
from arena.present.blocks import Commands
from arena.stages.queries_config import load_either
from arena.store import shown, sqlite_path
from judges.errors import InputError
from ui import data, editing, text
from ui.access import allowed
from ui.address import link
from ui.show import draw

PAIRWISE: Final = "pairwise:\n  judges: [judge]\n  both_orders: true"
_MOST_FILES: Final = 20
"""Number of YAML files beside a store among which its configuration is looked for."""


def run(words: str, source: data.Source) -> None:
    """Draw a message that results are missing, and how a run is started."""
    text.nothing(words)
    offer_run(source)


def offer_run(source: data.Source) -> None:
    """Draw the button that leads to the next run; without one, the command of the run, or who can start it."""
    config = editing.configured()
    if not allowed("edit"):
        st.caption("Whoever runs these pages can start the run.")
    elif config is not None and source.tournament in ("", config.name):
        buttons({"Plan and start the run": link("workbench", source, view="runs")})
    elif source.tournament and data.settings(source).imported:
        st.caption("These verdicts were imported. For more, write a YAML file with your data and run it:")
        command("init", f"{source.tournament}-run")
    else:
        command("run", _yaml_file(source) or "tournament.yaml")


def add(words: str, yaml: str, source: data.Source) -> None:
    """Draw a message that the tournament lacks something, and the YAML section that would add it.

    If the YAML file has the section already, only a run is missing; a tournament of imported verdicts has no such file.
    """
    settings = data.settings(source)
    if not allowed("edit"):
        text.nothing(words)
        return
    if settings.imported or settings.section(yaml.partition(":")[0]) is not None:
        run(words, source)
        return
    with st.container(border=True):
        st.markdown(words)
        st.code(yaml, language="yaml")
        file = _yaml_file(source)
        text.quiet(f"Add this to {file or 'the YAML file of this tournament'}, then run it:")
        offer_run(source)


def texts(source: data.Source) -> None:
    """Draw a message that an imported tournament has no texts, and the command that imports them."""
    text.nothing(text.NO_TEXTS)
    if allowed("edit"):
        st.caption("Import the same table again, with the tables of texts:")
        _import(source, "verdicts", "VERDICTS.csv", "--queries", "QUERIES.csv", "--answers", "ANSWERS.csv")
    else:
        st.caption("Whoever runs these pages can import them.")


def tasks(words: str, source: data.Source) -> None:
    """Draw a message that there is nothing to judge for people, and what leads to tasks; ``words`` if a run does."""
    if data.played(source):
        texts(source)
    else:
        none = "People judge what judges judge: games, documents, grades or nuggets. Here are none."
        sections = {kind.section for kind in KINDS.values() if kind.form is not None}
        run_or_compare(words, source, sections, none)


def run_or_compare(words: str, source: data.Source, sections: Collection[str], none: str) -> None:
    """Draw that a run is missing or, if the tournament has none of these sections, how answers are compared."""
    if any(data.settings(source).section(section) is not None for section in sections):
        run(words, source)
    else:
        add(none, PAIRWISE, source)


def labels(words: str, source: data.Source, forms: Mapping[str, str]) -> None:
    """Draw a message that labels by people are missing, and how to get them.

    ``forms`` are the parts of the page Review that have tasks, by what one does there.
    """
    text.nothing(words)
    if not forms:
        tasks("Judges come first.", source)
    elif allowed("vote"):
        buttons({label: link("review", source, view=view) for label, view in forms.items()})
    else:
        st.caption("To judge, ask whoever runs these pages to make you a voter.")
    if allowed("edit"):
        st.caption("Import labels that you have already:")
        _import(source, "votes", "LABELS.csv")


def buttons(links: Mapping[str, str]) -> None:
    """Draw links that look like buttons, by their labels."""
    text.lines(*(text.TextLine("button", label, link=address) for label, address in links.items()))


def command(*words: object) -> None:
    draw(Commands([shlex.join(["ragleague", *map(str, words)])]))


def store_name(source: data.Source) -> str:
    """The store as commands name it; a placeholder for those who may not edit, as it tells where the store is."""
    if not allowed("edit"):
        return "STORE"
    file = sqlite_path(source.location)
    return shown(source.location) if file is None else str(file.absolute())


def _import(source: data.Source, kind: str, file: str, *more: str) -> None:
    command("import", kind, file, "--store", store_name(source), "--tournament", source.tournament, *more)


def _yaml_file(source: data.Source) -> Path | None:
    """The YAML file that the pages were started with or, if they were started on a store, the one beside the store."""
    if (started := editing.config_file()) is not None:
        return started
    if (store := sqlite_path(source.location or data.location())) is None:
        return None
    for file in sorted(store.parent.glob("*.yaml"))[:_MOST_FILES]:
        with suppress(InputError, OSError):
            config = load_either(file)
            if isinstance(config, Config) and source.tournament in ("", config.name):
                named = sqlite_path(config.store)
                if named is not None and named.resolve() == store.resolve():
                    return file.absolute()
    return None
