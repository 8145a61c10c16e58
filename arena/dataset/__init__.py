"""Queries, retrieved documents and answers: what a tournament starts from, and the tables that hold it."""

from arena.dataset.files import load_dataset, read_answers, save_dataset
from arena.dataset.types import EVERY_AGENT, SHARED, Dataset

__all__ = ["EVERY_AGENT", "SHARED", "Dataset", "load_dataset", "read_answers", "save_dataset"]
