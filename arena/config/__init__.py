"""The one YAML file. Unknown keys are refused, paths are relative to the file, keys stay in the environment.

``ratings`` and ``stored`` are modules of their own, since every leaderboard reads them and no other section.
"""
