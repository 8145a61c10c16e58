"""The one YAML file. Unknown keys are refused, paths are relative to the file, keys stay in the environment."""

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
