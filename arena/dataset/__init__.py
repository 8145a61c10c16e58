"""Queries, retrieved documents and answers: what a tournament starts from. ``files`` reads and writes their tables."""

from arena.dataset.types import EVERY_AGENT, SHARED, Dataset

__all__ = ["EVERY_AGENT", "SHARED", "Dataset"]
