"""People's annotations of a tournament: the tasks of each annotator, and reading and writing annotations as files."""
