"""What a person who waits may want to know before anything is done; the command line shows it."""

from __future__ import annotations

import logging
from typing import Final

PROGRESS: Final = logging.getLogger("ragleague.progress")
"""A line for each thing that takes time: a model that is loaded, a batch that is looked for."""
