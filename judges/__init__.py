"""What a judge sees and says: prompts in, verdicts or failures out."""
