"""Search for false sentences: small worlds whose truth is known, and every sentence said of them checked.

``python -m benchmarks.false_sentences --tables 2000 --tournaments 200 --seed 0`` draws tables of verdicts, which it
rates as ``rate`` does, tables of judges and people for ``calibrate``, and whole tournaments, which it runs and reads as
``leaderboard``, ``compare``, ``queries``, ``calibrate``, ``report`` and gates show them. Independent code checks each
sentence. Exit status 1 where one is false, where no checker knows it, or where a claim about the world is untrue more
often than its level allows: teach new sentences to ``claims``, ``terminal``, ``page``, ``calibrated`` or ``judged``.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.false_sentences.search import search_ratings, search_tournaments, search_votes
from benchmarks.false_sentences.sentences import Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=2000, help="of each kind")
    parser.add_argument("--tournaments", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="false sentences of each kind that are shown")
    given = parser.parse_args()
    found = Result()
    tables, tournaments = (range(given.first, given.first + own) for own in (given.tables, given.tournaments))
    search_ratings(found, tables, given.seed)
    search_votes(found, tables, given.seed)
    search_tournaments(found, tournaments, given.seed)
    print_result(found, given.show)
    sys.exit(0 if found.holds else 1)


def print_result(found: Result, most: int) -> None:
    """Write counts by kind of sentence, claims that are untrue, and false sentences with their world."""
    print(f"{'sentence':<28}{'said':>9}{'false':>8}")
    for kind, said in sorted(found.said.items()):
        print(f"{kind:<28}{said:>9,}{len(found.false.get(kind, [])):>8,}")
    print(f"{'all':<28}{sum(found.said.values()):>9,}{sum(map(len, found.false.values())):>8,}\n")
    print(f"{'claim':<28}{'not true':>9}{'said':>8}{'level':>8}{'at most':>9}")
    for claim, rate in found.rates.items():
        print(f"{claim:<28}{rate.null:>9,}{rate.wrong:>8,}{rate.level:>8.1%}{rate.allowed:>9,}")
    print(f"\nleaders named: {found.leaders}; with a best agent and queries enough: {found.could_lead}")
    print(", ".join(f"{number:,} {kind}" for kind, number in found.worlds.items()))
    for kind, false in sorted(found.false.items()):
        for where, line, wrong in false[:most]:
            print(f"{kind} [{where}]: {wrong}: {line}")


if __name__ == "__main__":
    main()
