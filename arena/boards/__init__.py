"""Boards: frozen objects with a tournament's results; each makes tables, charts, sentences and JSON of them."""
