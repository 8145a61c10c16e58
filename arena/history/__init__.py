"""What runs were of and what they came to, and two of them compared."""
