"""Calibration as it is shown: judges against people, figures that people correct, ways of scoring, what style does."""
