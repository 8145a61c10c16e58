"""Scores of rankings and of answers: measures against labels, citations, support; runs side by side."""
