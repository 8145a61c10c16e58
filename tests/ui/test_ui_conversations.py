"""Pages that show a query show what was said before it, as text that does nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.boards.games import address_of
from arena.results.games import GameKey
from retrieval_eval.data.tables import write_rows
from tests.support.pages import page, start_on
from tests.support.tournaments import configured, run, write_data

PLANTED = "<script>alert(1)</script>\n![x](https://tracker.example/p.png)"
GAME = address_of(GameKey("q2", "x", "y", "judge"))


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("queries", {"query": "q2"}),
        ("games", {"game": GAME}),
        *((view, {"annotator": "ann"}) for view in ("vote", "label", "grade")),
    ],
)
def test_pages_show_the_thread_of_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, address: dict[str, str]
) -> None:
    write_data(tmp_path, ["q2"])
    rows = [
        {"qid": "q1", "query": "Who wrote Dune?", "conversation": "c", "turn": 1, "reference": PLANTED},
        {"qid": "q2", "query": "And when?", "conversation": "c", "turn": 2},
    ]
    write_rows(tmp_path / "queries.csv", [*rows[0]], rows)
    config = configured(tmp_path)
    run(config)
    start_on(monkeypatch, config)
    drawn = page(name, **address)
    (thread,) = (each.proto.body for each in drawn.get("html") if 'class="thread"' in each.proto.body)
    assert "<dt>user</dt><dd>Who wrote Dune?</dd>" in thread
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n![x]" in thread
    assert not re.search("<(script|img|a)[ >]", thread)
