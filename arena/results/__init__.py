"""Reads a tournament's results from its store: games, scores by agent and query, opinions."""
