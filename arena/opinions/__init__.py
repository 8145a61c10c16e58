"""Opinions of judges and people from files and stores, for calibration."""
