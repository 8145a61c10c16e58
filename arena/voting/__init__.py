"""What people are asked on the pages: games and documents, their order, and what was said of them as files."""
