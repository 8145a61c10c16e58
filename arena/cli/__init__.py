"""The command line of ragleague: one module per command or group of commands, and their common options."""

from arena.cli.main import main

__all__ = ["main"]
