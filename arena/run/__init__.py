"""Runs a tournament: plans the judgments, queues and counts them, asks the judges, and writes results to the store."""
