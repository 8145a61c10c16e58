"""Where a client's CPU goes: own time by package and by function, of everything that runs in this thread."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections import Counter
from collections.abc import Callable

_GROUPS = {
    r"/(openai|anthropic)/": "SDK",
    r"/(httpx2?|httpcore2?|h11|aiohttp|anyio|yarl|multidict|ssl\.py|frozenlist)": "HTTP transport",
    r"/(asyncio|selectors\.py)|_asyncio|select\.|_socket": "asyncio",
    r"/(arena/store|sqlalchemy|sqlite3)|sqlite3": "store",
    r"/(arena/prompting|arena/feed|judges/prompts|judges/pairwise|judges/criteria|jinja2)": "prompts",
    r"/(judges|arena|retrieval_eval)/": "the rest of ragleague",
    r"/pydantic": "pydantic",
    r"/json/|_json": "JSON",
}


def profiled(work: Callable[[], object], functions: int = 15) -> list[str]:
    """Do some work and say by own time which packages and functions took it. Profiling itself slows Python code."""
    profile = cProfile.Profile()
    profile.runcall(work)
    rows = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    groups: Counter[str] = Counter()
    own: list[tuple[float, str]] = []
    for (file, line, name), (_, _, seconds, _, _) in rows.items():
        place = name if file == "~" else f"{'/'.join(file.split('/')[-3:])}:{line} {name}"
        group = "waiting" if "select.epoll" in name else _group(f"{file} {name}")
        groups[group] += seconds
        if group != "waiting":
            own.append((seconds, place))
    busy = sum(seconds for group, seconds in groups.items() if group != "waiting")
    lines = [f"{busy:.2f} s busy in the main thread, own time by package:"]
    lines += [f"  {seconds / busy:5.1%}  {group}" for group, seconds in groups.most_common() if group != "waiting"]
    lines += ["functions by own time:"]
    return lines + [f"  {seconds / busy:5.1%}  {place}" for seconds, place in sorted(own, reverse=True)[:functions]]


def _group(place: str) -> str:
    return next((group for pattern, group in _GROUPS.items() if re.search(pattern, place)), "Python and the rest")
