"""The wheel, not the checkout: it holds every file that is not Python, and its demo runs elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

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


def test_the_installed_wheel_runs_the_demo_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
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
        cwd=tmp_path,
        check=True,
    )
    script = (
        "import arena.cli, judges, retrieval_eval, ui, sys\n"
        "print(*(package.__file__ for package in (arena, judges, retrieval_eval, ui)), file=sys.stderr)\n"
        "sys.argv = ['ragleague', 'demo', '--dir', 'elsewhere']\n"
        "arena.cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].count(str(target)) == 4
    assert "fusion-bm25" in done.stdout
    assert (tmp_path / "elsewhere/rag-handbook.db").is_file()
