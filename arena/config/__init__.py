"""The one YAML file. Unknown keys are refused, paths are relative to the file, keys stay in the environment.

Each section has a module: a leaderboard reads stored settings with ``ratings`` alone.
"""
