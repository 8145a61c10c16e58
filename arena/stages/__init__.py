"""The judging stages of a tournament: which judgments each stage needs, and which further ones results lead to."""
