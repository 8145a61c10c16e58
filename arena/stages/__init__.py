"""The stages of a tournament: the judgments that each stage needs, and the further judgments that results lead to."""
