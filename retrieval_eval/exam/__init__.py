"""EXAM evaluation: how many of a query's test questions and key facts (nuggets) an agent's passages cover.

Sources: EXAM++ (Farzi and Dietz, LLM4Eval 2024) and the Rubric-Grading Workbench (Dietz, SIGIR 2024). The functions
document what the papers leave open and where the workbench's code differs from the papers (``compat="workbench"``).
"""
