"""The stages of a tournament: what each wants judged, what a result leads to, and how both are read."""
