"""The YAML configuration: unknown keys are refused, paths are relative to the file, keys stay in the environment."""
