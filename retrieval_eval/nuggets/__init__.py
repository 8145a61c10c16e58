"""Nugget evaluation of answers (Pradeep et al. 2024): banks of nuggets, which nuggets answers support, scores."""
