"""The web leaderboard."""
