"""What a store holds of a tournament, read into values: games, scores by agent and query, opinions."""
