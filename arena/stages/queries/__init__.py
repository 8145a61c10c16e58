"""Synthetic queries: passages of documents, models' questions on them, filters, quotas, review."""
