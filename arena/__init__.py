"""Tournaments of RAG agents: schedule, ratings, store and command line."""
