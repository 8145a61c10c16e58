"""``python -m tests.faults``: make every faulty input, and print what is said of it, its exit status and the calls."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.faults.table import FAULTS
from tests.faults.world import meet


def main() -> None:
    print("| what is wrong | what is said | status | calls |\n|---|---|---|---|")  # noqa: T201 - it is a command
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            met = meet(fault, Path(folder).resolve())
        print(f"| {fault.group}: {fault.what} | {met.says} | {met.status} | {met.calls} |")  # noqa: T201


if __name__ == "__main__":
    main()
