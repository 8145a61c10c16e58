"""Calibration: compares judges with people and scoring methods with each other, and corrects estimates for judge bias.

A pure core: records and arrays in, frozen results out. Files, the store and the command line are elsewhere.
"""

from typing import Final

EPSILON: Final = 0.1
"""The default epsilon: the strictest value that the authors of the alternative annotator test recommend, for crowds."""
