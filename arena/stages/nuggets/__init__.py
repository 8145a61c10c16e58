"""Nuggets as stages of a run, and as a study of their own."""
