"""A tournament as one HTML file: what a team attaches to a decision."""
