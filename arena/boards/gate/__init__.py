"""The gate, which decides whether a new agent may replace an old one: one score, the board, and how both are made."""
