"""Agents: reference RAG systems for comparison and for the demo, and adapters for the user's systems."""
