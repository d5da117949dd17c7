"""Runs Great Expectations in memory, without output, and makes sure that no check is lost.

Expectations are created from classes, because the library silently drops an unknown type in dict form. Every validation must
return one valid result per expectation. Importing the library takes seconds, so it happens on first use.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Importing it logs two hundred lines, which would fill a task's log.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

# COMPLETE with the row index only. Index columns would be a hundred times slower for 100 K rows, and values and query text are
# as long as the table.
RESULT_FORMAT = {
    "result_format": "COMPLETE",
    "exclude_unexpected_values": True,
    "return_unexpected_index_query": False,
    "partial_unexpected_count": 0,
}


@dataclass(frozen=True)
class Validation:
    """A completed validation.

    name: of the suite.
    failed: by meta id of the expectation, the flagged rows (positions).
    checked: by meta id, the number of checked rows.
    key, result: the library's own. The context's store has the result under the key.
    """

    name: str
    failed: dict[str, list[int]]
    checked: dict[str, int]
    key: Any
    result: Any
    context: Any


def validate(
    name: str, frame: pd.DataFrame, expectations: Sequence[Any], run: tuple[str, str] | None = None
) -> Validation:
    """Run a Checkpoint of `expectations`, each with an `id` in its meta, over `frame` (row index 0..n-1, no nulls).

    run: name and time of the run, for Data Docs. Raises RuntimeError if the library didn't evaluate every expectation.
    """
    if frame.isna().to_numpy().any():
        raise RuntimeError(f"{name}: Great Expectations must get no nulls, its verdicts on them differ by expectation")
    ids = [e.meta["id"] for e in expectations]
    if not ids or len(set(ids)) != len(ids):
        raise RuntimeError(f"{name}: expectations need ids that differ, got {ids}")
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas(name).add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe(name)
    suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=list(expectations)))
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(name=name, validation_definitions=[definition], result_format=RESULT_FORMAT)
    )
    # The name becomes a folder's, and some file systems allow no colons.
    identifier = RunIdentifier(run_name=run[0].replace(":", "-"), run_time=run[1]) if run else None
    done: Any = checkpoint.run({"dataframe": frame}, run_id=identifier)
    ((key, result),) = done.run_results.items()
    failed, checked = {}, {}
    for one in result.results:
        failed[one.expectation_config.meta["id"]] = _flagged(name, one)
        checked[one.expectation_config.meta["id"]] = one.result["element_count"]
    if sorted(failed) != sorted(ids) or len(result.results) != len(ids):
        raise RuntimeError(f"{name}: {len(ids)} expectations, but results for {sorted(failed)}")
    return Validation(name, failed, checked, key, result, context)


def _flagged(name: str, one: Any) -> list[int]:
    identity = one.expectation_config.meta["id"]
    if "element_count" not in one.result:
        raise RuntimeError(f"{name}: expectation {identity} could not be evaluated: {one.exception_info}")
    rows = one.result.get("unexpected_index_list") or []
    if len(rows) != one.result["unexpected_count"]:
        raise RuntimeError(f"{name}: expectation {identity} doesn't say which rows it flagged")
    if one.success != (not rows) or one.result.get("missing_count"):
        raise RuntimeError(f"{name}: expectation {identity} says success={one.success} and flags {len(rows)} rows")
    return rows
