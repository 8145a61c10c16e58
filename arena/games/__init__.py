"""All games of a tournament as columns: small enough to keep at hand, quick to filter, without a text."""
