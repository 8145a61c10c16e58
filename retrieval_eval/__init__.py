"""Retrieval labels, test banks and the reference RAG agents."""
