"""The wheel, not the checkout: it holds every file that is not Python, and its demo runs elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DATA_SUFFIXES = {".yaml", ".csv", ".html", ".css", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (made,) = out.glob("*.whl")
    return made


def test_the_source_distribution_builds_the_same_wheel_and_an_index_would_take_both(
    wheel: Path, tmp_path: Path
) -> None:
    for folder, target in ((ROOT, "sdist"), (tmp_path / "unpacked", "wheel")):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path)]
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        if target == "sdist":
            (source,) = tmp_path.glob("*.tar.gz")
            with tarfile.open(source) as archive:
                archive.extractall(tmp_path, filter="data")
            (tmp_path / source.name.removesuffix(".tar.gz")).rename(tmp_path / "unpacked")
    (rebuilt,) = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(rebuilt).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())
    checked = subprocess.run(  # noqa: PLW1510 - its status is asserted
        [sys.executable, "-m", "twine", "check", "--strict", rebuilt, source], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout.count("PASSED")) == (0, 2), checked.stdout


def test_the_wheel_holds_every_data_file_and_no_tests(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        file.relative_to(ROOT).as_posix()
        for package in ("arena", "judges", "ragleague", "retrieval_eval", "ui")
        for file in (ROOT / package).rglob("*")
        if file.suffix in {*DATA_SUFFIXES, ".py"} and "__pycache__" not in file.parts
    }
    assert {"judges/prompts/pairwise.yaml", "judges/prices.yaml", "arena/demo/answers.csv"} <= wanted
    assert wanted <= inside
    assert any(name.endswith("/licenses/LICENSE") for name in inside)
    assert {name.split("/")[0] for name in inside if ".dist-info" not in name} == {
        "arena",
        "judges",
        "ragleague",
        "retrieval_eval",
        "ui",
    }


@pytest.fixture(scope="module")
def target(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel is installed."""
    target = tmp_path_factory.mktemp("target") / "installed"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-deps",
            "--target",
            target,
            "--python",
            sys.executable,
            wheel,
        ],
        cwd=target.parent,
        check=True,
    )
    return target


def test_the_installed_wheel_runs_the_demo_outside_the_checkout(target: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(target)}
    where = "import arena, judges, ragleague, retrieval_eval, ui\nprint(arena, judges, ragleague, retrieval_eval, ui)"
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.count(str(target)) == 5
    done = subprocess.run(
        [target / "bin/ragleague", "demo", "--out", "elsewhere"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "fusion-bm25" in done.stdout
    assert (tmp_path / "elsewhere/rag-handbook.db").is_file()


@pytest.mark.nightly  # mypy reads everything anew
def test_a_type_checker_sees_the_interface_of_the_installed_wheel(target: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env")
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    # Ours from the wheel; of the development environment what we need, but not its link to the checkout.
    (site / "both.pth").write_text(f"{target}\n{sysconfig.get_path('purelib')}\n")
    # Nothing of theirs is in what is asked below.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\n[mypy-IPython.*,jinja2.*,markdown_it.*,rich.*,scipy.*,sqlalchemy.*]\n"
        "follow_imports = skip\nfollow_imports_for_stubs = True\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        """import ragleague as rl

data = rl.load("answers/*.jsonl")
board = rl.run(data, judge="openai/gpt-4.1-mini")
reveal_type((data, board, rl.open("store.db"), rl.rate("verdicts.csv")))
reveal_type((board.to_frame(), board.games(), board.scores("exam"), board.compare("new", "old")))
board.tograph()
rl.run(5, judge=3)
"""
    )
    checked = subprocess.run(  # noqa: PLW1510 - its status is asserted
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", tmp_path / "env/bin/python", script.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = checked.stdout.splitlines()
    assert "Dataset, ragleague.board.Board, ragleague.board.Board, ragleague.rating.Rated]" in said[0], checked.stdout
    assert said[1].count("DataFrame") == 3
    assert "GateBoard]" in said[1]
    assert '"Board" has no attribute "tograph"' in said[2]
    assert [line.rpartition("[")[2] for line in said[2:-1]] == ["attr-defined]", "arg-type]", "arg-type]"]


def test_the_pythons_that_are_declared_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    head = "Programming Language :: Python :: "
    declared = {line.removeprefix(head) for line in project["classifiers"] if line.startswith(f"{head}3.")}
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    tested = set(jobs["pythons"]["strategy"]["matrix"]["python"])
    assert declared == tested - {"3.14"} == {"3.11", "3.12", "3.13"}


def test_the_nightly_tests_also_run_where_a_file_that_is_there_changes() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8"))
    triggers = workflow[True]  # which YAML reads in "on"
    assert triggers["push"] == triggers["pull_request"]
    assert [path for path in triggers["push"]["paths"] if not any(ROOT.glob(path))] == []
