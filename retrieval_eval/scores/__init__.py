"""Scores of rankings and answers: measures by relevance labels, citation precision, support, run comparisons."""
