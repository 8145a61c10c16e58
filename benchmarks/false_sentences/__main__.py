"""Search for false sentences: small tables of verdicts whose truth is known, and every sentence said of them checked.

``python -m benchmarks.false_sentences --tables 2000 --seed 0`` rates each table as ``rate`` does and makes its report,
in this process; then independent code checks each sentence against the raw verdicts. Exit status 1 where one is false,
or where no checker knows it: teach new sentences to ``claims``, ``terminal`` or ``page``.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.false_sentences.search import Result, search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="false sentences of each kind that are shown")
    given = parser.parse_args()
    found = search(range(given.first, given.first + given.tables), given.seed)
    print_result(found, given.show)
    sys.exit(0 if found.holds else 1)


def print_result(found: Result, most: int) -> None:
    """Write counts by kind of sentence, and those that are false with their table."""
    print(f"{'sentence':<28}{'said':>9}{'false':>8}")
    for kind, said in sorted(found.said.items()):
        print(f"{kind:<28}{said:>9,}{len(found.false.get(kind, [])):>8,}")
    print(f"{'all':<28}{sum(found.said.values()):>9,}{sum(map(len, found.false.values())):>8,}")
    print(f"\nleaders named falsely: {found.wrong_leaders} of {found.tables} tables; at most {found.allowed} by chance")
    print(f"leaders named: {found.leaders}; tables with a best agent and queries enough: {found.could_lead}")
    for kind, false in sorted(found.false.items()):
        for where, line, wrong in false[:most]:
            print(f"{kind} [{where}]: {wrong}: {line}")


if __name__ == "__main__":
    main()
