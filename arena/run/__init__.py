"""A run of a tournament."""
