"""The one YAML file. Unknown keys are refused, paths are relative to the file, keys stay in the environment.

A section is imported when it is named: a leaderboard reads stored settings with one of them alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from arena.config.data import DataSection, StoreName
    from arena.config.exam import ExamSection, GenerateSection
    from arena.config.executor import ExecutorSection
    from arena.config.judging import PairwiseSection, ReferencesSection
    from arena.config.nuggets import NuggetAssignmentSection, NuggetsSection
    from arena.config.ratings import RatingsSection
    from arena.config.whole import Config, load_config

__all__ = [
    "Config",
    "DataSection",
    "ExamSection",
    "ExecutorSection",
    "GenerateSection",
    "NuggetAssignmentSection",
    "NuggetsSection",
    "PairwiseSection",
    "RatingsSection",
    "ReferencesSection",
    "StoreName",
    "load_config",
]

_MODULES: Final = {
    "data": {"DataSection", "StoreName"},
    "exam": {"ExamSection", "GenerateSection"},
    "executor": {"ExecutorSection"},
    "judging": {"PairwiseSection", "ReferencesSection"},
    "nuggets": {"NuggetAssignmentSection", "NuggetsSection"},
    "ratings": {"RatingsSection"},
    "whole": {"Config", "load_config"},
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
