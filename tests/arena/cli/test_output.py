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


def test_exported_verdicts_imported_again_give_the_same_ratings(
    cli: Any, played_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.store.imports._PART", 100)
    config = played_demo / "tournament.yaml"
    verdicts = tmp_path / "verdicts.csv"
    assert cli("export", config, verdicts).out.startswith("1092 rows")
    texts = [f for name in ("queries", "documents", "answers") for f in (f"--{name}", played_demo / f"{name}.csv")]
    assert cli("import", verdicts, "--store", tmp_path / "bare.db").status == 0
    assert cli("import", verdicts, "--store", tmp_path / "full.db", *texts).status == 0
    rated = {}
    for name in ("bare", "full"):
        again = tmp_path / f"{name}.csv"
        assert cli("export", tmp_path / f"{name}.db", again).status == 0
        assert sorted(again.read_text("utf-8").splitlines()) == sorted(verdicts.read_text("utf-8").splitlines())
        rated[name] = json.loads(cli("leaderboard", tmp_path / f"{name}.db", "--format", "json").out)
    original = json.loads(cli("rate", verdicts, "--format", "json").out)
    for name in rated:
        for row in rated[name]["agents"]:
            del row["criteria"]
        assert rated[name]["agents"] == original["agents"]
    assert rated["full"]["judge_health"]["longer_share"] is not None


def test_exported_data_make_the_same_tournament(cli: Any, played_demo: Path, tmp_path: Path) -> None:
    cli("export", played_demo / "tournament.yaml", tmp_path / "data", "--what", "data")
    for name in ("tournament.yaml", "exam.csv", "nuggets.jsonl", "rag-handbook.db"):
        shutil.copy(played_demo / name, tmp_path / "data")
    again = cli("run", tmp_path / "data/tournament.yaml", "--format", "json")
    assert again.err.count(" 0 calls") == 7
    assert again.out == cli("leaderboard", played_demo / "tournament.yaml", "--format", "json").out


def test_recorded_verdicts_give_the_recorded_elo(cli: Any, shared: Path) -> None:
    folder = shared / "data/ragelo_qdrant"
    rated = json.loads(cli("rate", folder / "pairwise_verdicts.csv", "--as-games", "--format", "json").out)
    with (folder / "agents.csv").open(newline="") as lines:
        names = {row["agent"]: row["name"] for row in csv.DictReader(lines)}
    with (folder / "recorded_elo_ranking.csv").open(newline="") as lines:
        recorded = {row["agent"]: float(row["score"]) for row in csv.DictReader(lines)}
    ours = {names[row["agent"]]: row["elo"] for row in rated["agents"]}
    drained = sum(ours.values()) / len(ours) - sum(recorded.values()) / len(recorded)
    assert ours == pytest.approx({name: score + drained for name, score in recorded.items()}, abs=5)


def test_published_win_percentages_give_the_published_order_of_ratings(cli: Any, shared: Path) -> None:
    matrix = shared / "data/papers/ragelo_win_percentages.csv"
    options = ["--queries", "200", "--set", "ties=half", "--set", "initial=500", "--samples", "0", "--format", "json"]
    rated = json.loads(cli("rate", matrix, *options).out)
    assert [row["bt"] for row in rated["agents"]] == pytest.approx([568.8, 545.2, 499.9, 482.3, 468.4, 435.4], abs=0.1)


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
