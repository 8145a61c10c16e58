"""Calibration: judges held against people, methods against each other, and estimates that correct a judge's bias.

A pure core: records and arrays in, frozen results out. Files, the store and the command line are elsewhere.
"""

from typing import Final

EPSILON: Final = 0.1
"""What the authors of the alternative annotator test advise for a crowd: the strictest of their three."""
