"""What Spark computes: outcomes, severities, causes and evidence, as codes and numbers.

`evaluate.py` and `upkeep.py` are what spark-submit runs. `frames/` holds facts as columns, `controls/` one rule a file,
`history/` readings over time and rack outages, `assemble/` one run, `scale/` the grouping of equal partitions, `retention/` the
upkeep.
"""
