"""Ratings as pure functions: games in, frozen results out. No files, logs or database."""
