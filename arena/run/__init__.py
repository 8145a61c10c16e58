"""Runs a tournament: the queue of judgments to make, the planner, the counters, and the writer to the store."""
