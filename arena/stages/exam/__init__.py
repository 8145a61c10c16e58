"""Exam questions and rubrics as a stage of a run, and as a study of their own."""
