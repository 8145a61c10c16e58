"""Calibration: judges held against people, methods against each other, and estimates that correct a judge's bias.

A pure core: records and arrays in, frozen results out. Files, the store and the command line are elsewhere.
"""
