"""The command line."""

from arena.cli.main import main

__all__ = ["main"]
