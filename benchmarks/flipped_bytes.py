"""Flip bytes of a store, one at a time, and see whether ``store check`` finds each that changes a leaderboard.

    python -m benchmarks.flipped_bytes --flips 300

Each flip is made in a copy of the demo's store, outside its free pages. The leaderboard is then the same, an error
of one line, or another one, which ``store check`` finds, or not: ``silent``, of which there must be none. ``--games``
takes a store of imported games alone.
"""

from __future__ import annotations

import argparse
import io
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path

from arena.cli.leaderboard import print_leaderboard
from arena.results.cache import cached_leaderboard
from arena.store import Store
from arena.store.check import check, damage_behind
from benchmarks.used import run
from benchmarks.volume import OF_A_QUERY, fill
from judges.errors import RagleagueError


def shown(path: Path) -> str:
    with closing(Store.open(str(path))) as store, redirect_stdout(io.StringIO()) as out:
        print_leaderboard(store, cached_leaderboard(store, store.only_tournament()), "json")
    return out.getvalue()


def without_figures(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("DELETE FROM figures")
        connection.commit()
        connection.execute("VACUUM")


def outcomes(path: Path, flips: int, seed: int) -> Iterator[tuple[int, str]]:
    """The place of each flip, and what follows: ``same``, ``error``, ``found``, ``silent`` or ``crashed``."""
    content, right = path.read_bytes(), shown_copy(path, path.read_bytes())
    rng = random.Random(seed)
    free = _free_pages(path)
    size = int.from_bytes(content[16:18], "big")
    while flips:
        place = rng.randrange(len(content))
        if place // size + 1 in free:
            continue
        flips -= 1
        flipped = bytearray(content)
        flipped[place] ^= rng.randrange(1, 256)
        try:
            changed = shown_copy(path, bytes(flipped)) != right
            yield place, ("found" if is_found(path) else "silent") if changed else "same"
        except RagleagueError:
            yield place, "error"
        except Exception as error:  # as the command line does: a line if the store is damaged
            yield place, "error" if damage_behind() else f"crashed: {type(error).__name__}: {error}"


def shown_copy(path: Path, content: bytes) -> str:
    copy = path.with_name("flipped.db")
    for beside in ("", "-wal", "-shm"):
        Path(f"{copy}{beside}").unlink(missing_ok=True)
    copy.write_bytes(content)
    return shown(copy)


def is_found(path: Path) -> bool:
    """Whether ``store check`` finds something wrong with the copy last shown."""
    try:
        with closing(Store.open(str(path.with_name("flipped.db")))) as store:
            return bool(check(store).problems)
    except RagleagueError:
        return True


def _free_pages(path: Path) -> set[int]:
    """Numbers of the pages that hold nothing: the trunks of the list of free pages, and their leaves."""
    content = path.read_bytes()
    size = int.from_bytes(content[16:18], "big")
    found: set[int] = set()
    trunk = int.from_bytes(content[32:36], "big")
    while trunk:
        page = content[(trunk - 1) * size : trunk * size]
        words = [int.from_bytes(page[at : at + 4], "big") for at in range(0, size, 4)]
        found |= {trunk, *words[2 : 2 + words[1]]}
        trunk = words[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--games", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = games_store(Path(folder)) if given.games else demo_store(Path(folder))
        counted = Counter[str]()
        for place, outcome in outcomes(path, given.flips, given.seed):
            counted[outcome.partition(":")[0]] += 1
            if outcome not in {"same", "error", "found"}:
                print(f"byte {place}: {outcome}")
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(counted.items())))


def demo_store(folder: Path) -> Path:
    run("demo", "--out", str(folder / "demo"))
    path = folder / "demo" / "rag-handbook.db"
    shown(path)
    without_figures(path)
    return path


def games_store(folder: Path) -> Path:
    path = folder / "games.db"
    fill(str(path), 10 * OF_A_QUERY)
    return path


if __name__ == "__main__":
    main()
