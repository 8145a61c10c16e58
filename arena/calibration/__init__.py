"""How far judges, and people, agree: coefficients as pure functions of labels or counts."""
