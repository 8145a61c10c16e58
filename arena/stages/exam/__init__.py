"""The exam stage, with its test bank and the passages to grade."""
