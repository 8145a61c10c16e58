"""What a tournament starts from: its queries, documents and answers, and the tables that it reads."""
