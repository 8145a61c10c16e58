"""Decide which of your RAG systems is better, and whether the judge that says so can be trusted.

The face of four packages: ``judges`` asks, ``retrieval_eval`` scores texts, ``arena`` runs and rates tournaments,
``ui`` shows them on a page. Nothing imports this one.
"""

from importlib import metadata

__version__ = metadata.version("ragleague")
