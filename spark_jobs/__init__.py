"""The Spark jobs. They compute outcomes, severities, causes and evidence, as codes and numbers.

spark-submit runs `evaluate.py` and `upkeep.py`. Packages:

- `frames/`: facts as columns
- `controls/`: one rule per file
- `history/`: readings over time, and rack outages
- `assemble/`: one run
- `scale/`: the grouping of equal partitions
- `retention/`: upkeep of the lake
"""
