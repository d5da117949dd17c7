"""The rules, as Column -> Column functions, and the entry point that spark-submit runs.

`evaluate.py` is the job. `facts.py` reads and joins what was collected, `partitions.py` and `topics.py` derive what the
rules need, `controls/` holds one file a control, named like it, and `findings.py` turns outcomes into findings.
"""
