"""Addresses of pages: what a link asks for and the store does not have is said, wherever a page has fields."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st

from tests.support.pages import page, shown
from tests.support.peoples_words import add_people
from tests.support.sample_store import write_store
from ui.data import LOCATION_VARIABLE


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_store(tmp_path_factory.mktemp("address") / "s.db")
    add_people(path, "sample")
    return path


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("retrieval", {"measure": "Measure", "labels": "Labels of", "label": "Label", "documents": "Documents"}),
        ("queries", {"agent": "Agent"}),
        (
            "calibration",
            {
                "across": "Across",
                "up": "Up",
                "corrected": "Judge and what it judged",
                "width": "Say how many labels an interval of this width needs",
                "differences": "Judge and what it judged",
            },
        ),
        ("matrix", {"counted": "Percentages count"}),
    ],
)
def test_what_an_address_asks_for_in_vain_is_said(
    store: Path, monkeypatch: pytest.MonkeyPatch, name: str, fields: dict[str, str]
) -> None:
    monkeypatch.setenv(LOCATION_VARIABLE, str(store))
    st.cache_resource.clear()
    assert "not here" not in shown(page(name))
    run = page(name, **dict.fromkeys(fields, "nonsense"))
    notes = [note.value for note in run.warning if "not here" in note.value]
    assert sorted(label for note in notes for label in note.rstrip(".").split(": ")[1].split(", ")) == sorted(
        fields.values()
    )
