"""Statistics of what is judged, pure: estimates, the bootstrap over clusters, agreement, rank correlation, tests."""
