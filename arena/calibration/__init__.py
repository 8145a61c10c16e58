"""Calibration: compares judges with people and scoring methods with each other, and corrects estimates for judge bias.

A pure core: records and arrays in, frozen results out. Files, the store and the command line are elsewhere.
"""

from typing import Final

EPSILON: Final = 0.1
"""Default of epsilon in the alternative annotator test: by how much a judge may be worse than a person and still pass.
It is the strictest value that the test's authors recommend, for crowd workers."""
