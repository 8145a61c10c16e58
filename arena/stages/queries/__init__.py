"""Synthetic queries: models write queries about passages; filters, quotas and a review select some of them."""
