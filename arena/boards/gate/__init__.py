"""The gate: decides whether a new agent may replace an old one, by one or more scores."""
