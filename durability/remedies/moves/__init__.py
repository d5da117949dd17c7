"""The planner of a cluster's moves: which replicas a plan of change moves, and where. Pure Python, no lake and no cluster.

`model` has the problem and the solution, `solve` the planner.
"""
