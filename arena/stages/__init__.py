"""The stages of a tournament: what each wants judged, and what a result leads to."""
