"""The exam stage, and the test bank and passages it grades."""
