"""A gate: whether a new agent may replace an old one."""
