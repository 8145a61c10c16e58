"""Agents under test: asked for what is missing, and what their answers took."""
