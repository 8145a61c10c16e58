"""Which queries tell the agents apart, and on which each agent fails."""
