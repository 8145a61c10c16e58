"""The pages' views; each draws one page, or a part of one, of a tournament."""
