"""The classes and functions for building your own stage in another distribution; see ``docs/own-stage.md``."""

from arena.boards.scores import ScoreBoard
from arena.calibration import ItemMeans
from arena.config.schema import Config
from arena.config.stages import ListedStage
from arena.data.dataset import Dataset
from arena.data.kinds import JudgedKind
from arena.present.blocks import Board
from arena.results.outcomes import StageResults, outcomes
from arena.stages.base import RelevanceLabels, TournamentStage
from arena.store import Result, Store, Wanted
from judges.prompts import load_prompt
from judges.sections import Section
from judges.types import Inputs, Judgment, Prompt, Task
from retrieval_eval.stats.scores import Scores, scores_of

__all__ = [
    "Board",
    "Config",
    "Dataset",
    "Inputs",
    "ItemMeans",
    "JudgedKind",
    "Judgment",
    "ListedStage",
    "Prompt",
    "RelevanceLabels",
    "Result",
    "ScoreBoard",
    "Scores",
    "Section",
    "StageResults",
    "Store",
    "Task",
    "TournamentStage",
    "Wanted",
    "load_prompt",
    "outcomes",
    "scores_of",
]
