"""The cross-check: Great Expectations computes Spark's verdicts on topics a second time.

Every scalar control of the catalogue is one expectation over `topic_posture`. It compares `observed` with `required` of each
topic's `checks` with `known`. The flagged topics must be those with Spark's verdict FAIL or EXEMPT. A topic on which the two
differ goes to `disagreements`, and the run isn't verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue import CONTROLS, SCALAR_CONTROLS
from durability.lake.tables import DISAGREEMENTS, TOPIC_POSTURE, TOPICS, VERDICTS
from expectations.data_docs import CROSS_CHECK, FOLDER, write_data_docs
from expectations.gx import validate

if TYPE_CHECKING:
    import pandas as pd

    from durability.lake import Lake
    from durability.plan import Plan

FAIL, PASS, NOT_JUDGED = "FAIL", "PASS", "not judged"
FAILED = ("FAIL", "EXEMPT")

Topic = tuple[str, str]  # cluster, topic


@dataclass(frozen=True)
class Flagged:
    """The result of the cross-check.

    verified: Spark and Great Expectations agree on every topic of every evaluated cluster.
    disagreements: the number of rows written, one per topic and control.
    checked: the number of checked topics by control.
    not_cross_checked: controls that compare no two numbers.
    problems: sentences on why the run isn't verified.
    """

    verified: bool
    disagreements: int
    checked: dict[str, int]
    not_cross_checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def flag(lake: Lake, plan: Plan, out: Path) -> Flagged:
    """Check the result of `plan`, append to `disagreements`, and write Data Docs to `out`/data_docs.

    If topics of an evaluated cluster are missing in `topic_posture`, the run isn't verified.
    """
    posture = _by_control(_of_result(lake, TOPIC_POSTURE, plan, ["cluster", "topic", "checks"]))
    names = _topics(posture)
    problems = _missing_topics(lake, plan, names)
    if repeated := len(names) - len(set(names)):
        problems.append(f"`topic_posture` has {repeated} topics twice")
    checked = dict.fromkeys(SCALAR_CONTROLS, 0)
    flagged: dict[str, set[Topic]] = {control: set() for control in SCALAR_CONTROLS}
    if names:
        run = (plan.run_id, plan.started_at)
        validation = validate(CROSS_CHECK, _frame(posture), _expectations(), run)
        for control in SCALAR_CONTROLS:
            checked[control] = validation.checked[control]
            flagged[control] = {names[row] for row in validation.failed[control]}
        write_data_docs(validation, names, plan.started_at, Path(out) / FOLDER)
        problems += _not_looked_at(posture, checked)
    differences = _differences(posture, names, _spark_failures(lake, plan), flagged)
    _write(lake, plan, differences)
    if differences:
        problems.append(f"Spark and Great Expectations disagree on {len(differences)} verdicts; see `disagreements`")
    not_checked = [c for c, control in CONTROLS.items() if c not in SCALAR_CONTROLS and not control.planned]
    return Flagged(not problems, len(differences), checked, not_checked, problems)


def _column(control: str) -> str:
    return control.replace("-", "_")


def _by_control(posture: pa.Table) -> pa.Table:
    """`posture` with the columns `<control>_observed`, `_required` and `_known` per control instead of `checks`.

    They are NULL if a topic has no such check.
    """
    checks = posture["checks"].combine_chunks()
    fields = pc.list_flatten(checks)
    of_row = pc.list_parent_indices(checks)
    columns = {name: posture[name] for name in ("cluster", "topic")}
    rows = pa.array(range(posture.num_rows), of_row.type)
    for control in SCALAR_CONTROLS:
        mine = pc.equal(pc.struct_field(fields, "control"), control)
        at = pc.index_in(rows, of_row.filter(mine))
        for part in ("observed", "required", "known"):
            columns[f"{_column(control)}_{part}"] = pc.struct_field(fields, part).filter(mine).take(at)
    return pa.table(columns)


def _of_result(lake: Lake, table: Any, plan: Plan, columns: list[str], *more: Any) -> pa.Table:
    """Rows of the evaluated clusters under the plan's result. The condition starts with the days, to prune files."""
    from pyiceberg.expressions import And, EqualTo

    if not plan.judged:
        return pa.schema([table.arrow.field(c) for c in columns]).empty_table()
    of_run = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id), *more)
    return lake.scan(table, And(_days(plan), of_run), columns)


def _days(plan: Plan) -> Any:
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual

    moments = [s.moment.isoformat() for s in plan.judged]
    return And(GreaterThanOrEqual("captured_at", min(moments)), LessThanOrEqual("captured_at", max(moments)))


def _missing_topics(lake: Lake, plan: Plan, names: list[Topic]) -> list[str]:
    """Evaluated clusters whose topics in `topic_posture` differ from those in their facts."""
    from pyiceberg.expressions import And, In

    if not plan.judged:
        return []
    of_attempts = And(_days(plan), In("attempt_id", [s.attempt_id for s in plan.judged]))
    read, judged = _topics(lake.scan(TOPICS, of_attempts, ["cluster", "topic"])), set(names)
    problems = []
    for cluster in sorted({cluster for cluster, _ in set(read) ^ judged}):
        wanted, there = ({topic for topic in topics if topic[0] == cluster} for topics in (set(read), judged))
        problems.append(
            f"cluster {cluster}: {len(wanted)} topics were read, {len(wanted & there)} of them judged"
            + (f", and {len(there - wanted)} judged that were not read" if there - wanted else "")
        )
    return problems


def _topics(table: pa.Table) -> list[Topic]:
    return list(zip(table["cluster"].to_pylist(), table["topic"].to_pylist(), strict=True))


def _frame(posture: pa.Table) -> pd.DataFrame:
    """The scalar columns without nulls. Unknown numbers are 0, and the expectations skip them."""
    columns = {}
    for control in SCALAR_CONTROLS:
        name = _column(control)
        known = _usable(posture, name)
        for part in ("observed", "required"):
            values = pc.if_else(known, posture[f"{name}_{part}"], pa.scalar(0, pa.float64()))
            columns[f"{name}_{part}"] = values
        columns[f"{name}_known"] = known.cast(pa.int8())
    return pa.table(columns).to_pandas()


def _usable(posture: pa.Table, name: str) -> pa.ChunkedArray:
    """The `known` rows that have both numbers."""
    there = pc.and_(pc.is_valid(posture[f"{name}_observed"]), pc.is_valid(posture[f"{name}_required"]))
    return pc.and_(pc.fill_null(posture[f"{name}_known"], False), there)


def _names_where(names: list[Topic], mask: pa.ChunkedArray) -> set[Topic]:
    rows = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return {names[row] for row in rows}


def _expectations() -> list[Any]:
    """One expectation per control. It compares the pair of columns on the known rows."""
    import great_expectations.expectations as gxe
    from great_expectations.expectations.metadata_types import FailureSeverity
    from great_expectations.expectations.row_conditions import Column

    result = []
    for control, order in SCALAR_CONTROLS.items():
        name = _column(control)
        pair = [f"{name}_observed", f"{name}_required"]
        larger, smaller = pair if order == ">=" else reversed(pair)
        result.append(
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=larger,
                column_B=smaller,
                or_equal=True,
                row_condition=Column(f"{name}_known") == 1,
                severity=FailureSeverity(CONTROLS[control].severity),
                description=f"{control}: {CONTROLS[control].means}",
                meta={"id": control, "severity": CONTROLS[control].severity, "title": CONTROLS[control].title},
            )
        )
    return result


def _not_looked_at(posture: pa.Table, checked: dict[str, int]) -> list[str]:
    problems = []
    for control, rows in checked.items():
        usable = pc.sum(_usable(posture, _column(control))).as_py() or 0
        if rows != usable:
            problems.append(f"{control}: {usable} topics are known, Great Expectations looked at {rows}")
    return problems


def _spark_failures(lake: Lake, plan: Plan) -> dict[str, dict[Topic, str]]:
    """The outcome of topics that Spark fails, waived or not, by control."""
    from pyiceberg.expressions import EqualTo, In

    columns = ["cluster", "control", "resource", "category", "outcome"]
    wanted = (In("control", list(SCALAR_CONTROLS)), In("outcome", list(FAILED)), EqualTo("resource_type", "topic"))
    result: dict[str, dict[Topic, str]] = {control: {} for control in SCALAR_CONTROLS}
    for row in _of_result(lake, VERDICTS, plan, columns, *wanted).to_pylist():
        control = CONTROLS[row["control"]]
        if control.checked_category in (None, row["category"]) and row["category"] not in control.unchecked:
            result[row["control"]][row["cluster"], row["resource"]] = row["outcome"]
    return result


def _differences(
    posture: pa.Table, names: list[Topic], spark: dict[str, dict[Topic, str]], flagged: dict[str, set[Topic]]
) -> list[dict[str, str]]:
    """Both outcomes of the topics on which they differ, and of those that Spark calls known without both numbers."""
    found = []
    for control in SCALAR_CONTROLS:
        known = pc.fill_null(posture[f"{_column(control)}_known"], False)
        judged = _names_where(names, known)
        empty = _names_where(names, pc.and_(known, pc.invert(_usable(posture, _column(control)))))
        says = [(topic, "known, without a value", NOT_JUDGED) for topic in sorted(empty)]
        for topic in sorted((flagged[control] ^ spark[control].keys()) - empty):
            second = PASS if topic in judged else NOT_JUDGED
            if topic in flagged[control]:
                second = FAIL
            says.append((topic, spark[control].get(topic, "no failure"), second))
        found += [
            {"cluster": topic[0], "control": control, "resource": topic[1], "spark": first, "expectations": second}
            for topic, first, second in says
        ]
    return found


def _write(lake: Lake, plan: Plan, differences: list[dict[str, str]]) -> None:
    if not differences:
        return
    snapshots = {s.cluster: s for s in plan.judged}
    rows = []
    for difference in differences:
        snapshot = snapshots[difference["cluster"]]
        of_run = {"captured_at": snapshot.moment, "run_id": plan.run_id, "result_id": plan.result_id}
        rows.append({**difference, **of_run, "snapshot_id": snapshot.snapshot_id})
    lake.append(DISAGREEMENTS, pa.Table.from_pylist(rows, schema=DISAGREEMENTS.arrow))
