"""Files as they come and go: tables, TREC lines, recorded judgments."""
