"""Pure statistics of judgments: estimates, the bootstrap over clusters, agreement, rank correlation, tests."""
