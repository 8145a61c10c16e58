"""The calibration board: judges compared with people, corrected estimates, scoring methods, costs and style bias."""
