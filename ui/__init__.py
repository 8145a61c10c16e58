"""The web pages: leaderboard, comparison, queries, trust, review and workbench."""
