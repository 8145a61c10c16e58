"""Retrieval labels, test banks, scores, statistics and the reference RAG agents."""
