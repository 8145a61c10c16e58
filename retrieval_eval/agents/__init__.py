"""Reference RAG systems: agents to compare one's own with, and what the demo runs."""
