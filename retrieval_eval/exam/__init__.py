"""EXAM evaluation by questions and nuggets: banks, passages, grading without a model, scores, human checks.

Sources: EXAM++ (Farzi and Dietz, LLM4Eval 2024) and the Rubric-Grading Workbench (Dietz, SIGIR 2024). The functions
document what the papers leave open and where the workbench's code differs from the papers (``compat="workbench"``).
"""
