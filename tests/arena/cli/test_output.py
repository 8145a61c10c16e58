"""What the commands print: shapes other programs rely on, names that stay names, figures of papers."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ragleague


def test_exported_data_make_the_same_tournament(cli: Any, played_demo: Path, tmp_path: Path) -> None:
    cli("export", "data", played_demo / "tournament.yaml", tmp_path / "data")
    for name in ("tournament.yaml", "exam.csv", "nuggets.jsonl", "rag-handbook.db"):
        shutil.copy(played_demo / name, tmp_path / "data")
    again = cli("run", tmp_path / "data/tournament.yaml", "--format", "json")
    assert again.err.count(" 0 calls") == 7
    assert again.out == cli("leaderboard", played_demo / "tournament.yaml", "--format", "json").out


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """Twelve agents with long names; each of the first five beats every later agent and is therefore separated."""
    agents = [f"Retriever {number} with a long name (13B)" for number in range(12)]
    lines = [("qid", "agent_a", "agent_b", "verdict", "judge")]
    for i, strong in enumerate(agents):
        for j in range(i + 1, 12):
            lines += [(f"q{query}", strong, agents[j], "B" if i >= 5 and query == 0 else "A", "j") for query in (0, 1)]
    with (tmp_path / "long.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    return tmp_path / "long.csv"


def test_notes_that_repeat_for_many_agents_are_told_thrice(cli: Any, long_names: Path) -> None:
    quick = ("--samples", "50", "--set", "tournaments=5")
    told = json.loads(cli("rate", long_names, *quick, "--format", "json").out)["notes"]
    alike = [note for note in told if note.startswith("No maximum of the likelihood: ")]
    assert len(alike) > 4
    printed = cli("rate", long_names, *quick).out
    assert printed.count("No maximum of the likelihood: ") == 4
    assert f"No maximum of the likelihood: {len(alike) - 3} more, all in JSON" in printed


def test_without_queries_more_games_are_needed_not_more_queries(cli: Any, tmp_path: Path) -> None:
    table = tmp_path / "v.csv"
    table.write_text("agent_a,agent_b,verdict\n" + "x,y,A\ny,x,B\ny,x,A\n" * 10, encoding="utf-8")
    printed = cli("rate", table).out
    assert " more games like these" in printed
    assert "More games needed" in printed
    assert "more queries" not in printed


@pytest.mark.parametrize(
    "what", ["import arena", "import arena.cli; import sys; sys.argv = ['ragleague', '--help']; arena.cli.main()"]
)
def test_starting_up_loads_nothing_heavy(what: str) -> None:
    heavy = ["numpy", "pandas", "scipy", "pyarrow", "sqlalchemy", "openai", "anthropic", "torch", "streamlit"]
    script = f"import atexit, sys\natexit.register(lambda: print('loaded', *({heavy} & sys.modules.keys())))\n{what}"
    script = script.replace(str(heavy), f"set({heavy})")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded"


def test_the_version_is_printed_alone(cli: Any) -> None:
    told = cli("--version")
    assert (told.status, told.out, told.err) == (0, f"ragleague {ragleague.__version__}\n", "")
