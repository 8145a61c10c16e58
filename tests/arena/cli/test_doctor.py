"""What ``doctor`` says of an installation; what it says of a configuration is tested with the readers of each part."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from arena.cli.doctor import examine


def test_every_extra_is_looked_at() -> None:
    named = {name.removeprefix("extra ") for name, _, _ in examine() if name.startswith("extra ")}
    assert named == {*(metadata.metadata("ragleague").get_all("Provides-Extra") or ())}


def test_files_of_another_distribution_in_our_packages_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [(fine, detail) for name, fine, detail in examine() if name == "packages"] == [
        (True, "arena, judges, retrieval_eval and ui are ours alone")
    ]
    other = tmp_path / "courtroom-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: courtroom\nVersion: 1.0\n")
    (other / "top_level.txt").write_text("judges\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [(fine, detail) for name, fine, detail in examine() if name == "packages"] == [
        (False, "other distributions have files there too: judges (courtroom); uninstall one of both")
    ]
