"""The stages of a tournament: the judgments each stage needs, and those that results lead to."""
