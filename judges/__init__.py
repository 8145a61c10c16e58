"""LLM judges: prompts, providers, batches, and parsers that turn replies into verdicts or failures."""
