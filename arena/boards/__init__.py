"""Boards: results of a tournament as frozen values, each with its tables, charts, sentences and JSON."""
