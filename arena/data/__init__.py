"""The input data of a tournament: queries, documents and answers, and readers of the tables that hold them."""
