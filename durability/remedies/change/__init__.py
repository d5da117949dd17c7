"""A plan of change for one cluster: ordered steps, each with its undo, and the states in between. Pure Python.

`settings` decides what a topic's settings become and when, `assemble` orders steps and batches, `states` plays them on the
document, `proof` compares the findings before and after, `scripts` and `folder` give the texts of the plan's files.
"""
