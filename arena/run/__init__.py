"""Runs a tournament: the queue of wanted judgments, the planner, the counts, and the writer to the store."""
