"""People's annotations of a tournament: the tasks for each annotator, and files of annotations."""
