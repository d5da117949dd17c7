"""The steps of a run, one module each: plain functions, without Airflow.

A nightly run: plan, collect, gate, publish, evaluate, cross-check, findings, report, notify, conclude.
A pulse: plan, collect, gate, publish, evaluate, conclude, discard.

A step takes the run's settings and the results of earlier steps. It returns what later steps need, and reports its own
outcome in a `StepSummary`.

Two callers run the steps: `durability.steps.audit` in one process, and the operators of `kafka_durability` as one Airflow
task per step. A new step needs a module here, a `with` block in `audit.run`, an operator, and a line in the DAG.
"""
