"""Asking a hosted model in batches: for half the price, and with up to a day's patience."""
