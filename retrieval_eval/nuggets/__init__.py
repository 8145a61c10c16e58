"""Nugget evaluation of answers (Pradeep et al. 2024): nugget banks, assignments to answers, and six scores."""
