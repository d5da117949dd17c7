"""The steps of a run, one module each: plain functions, without Airflow.

Order of a nightly run: plan, collect, gate, publish, evaluate, cross-check, findings, report, notify, conclude. A pulse ends
after evaluate with conclude and discard. A step takes the run's settings and what earlier steps returned, says in a
`StepSummary` what came of it, and returns what later steps need.

Two callers put the steps together: `durability.steps.audit` in one process, and the operators of `kafka_durability`, one
Airflow task per step. A new step is a module here, a `with` block in `audit.run`, an operator, and a line in the DAG.
"""
