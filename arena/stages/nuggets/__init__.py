"""The nugget stage, and nuggets from files."""
