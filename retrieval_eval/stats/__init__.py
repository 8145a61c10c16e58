"""Statistics of judgments: estimates, the bootstrap over clusters of queries, agreement, rank correlation, tests."""
