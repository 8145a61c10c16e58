"""The YAML configuration file: unknown keys are refused, paths are relative to the file, keys stay in the environment.

``ratings`` and ``settings`` are separate modules because every leaderboard reads these two, but no other section.
"""
