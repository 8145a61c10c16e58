"""Readers and writers of files: tables, qrels, runs, test collections, recorded judgments."""
