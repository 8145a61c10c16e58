"""Nugget evaluation of answers: banks of nuggets, their assignment to answers, six scores (Pradeep et al. 2024)."""
