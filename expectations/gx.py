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

    failed: by meta id of the expectation, the flagged rows (positions).
    checked: by meta id, the number of checked rows.
    result: the library's own.
    """

    failed: dict[str, list[int]]
    checked: dict[str, int]
    result: Any
    context: Any


def validate(name: str, frame: pd.DataFrame, expectations: Sequence[Any]) -> Validation:
    """Validate `frame` (unique row index 0..n-1, no nulls) against `expectations`. Each has an `id` in its meta.

    Raises RuntimeError if the library didn't evaluate every one of them.
    """
    if frame.isna().to_numpy().any():
        raise RuntimeError(f"{name}: Great Expectations must get no nulls, its verdicts on them differ by expectation")
    ids = [e.meta["id"] for e in expectations]
    if not ids or len(set(ids)) != len(ids):
        raise RuntimeError(f"{name}: expectations need ids that differ, got {ids}")
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    asset = context.data_sources.add_pandas(name).add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe(name).get_batch({"dataframe": frame})
    suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=list(expectations)))
    result: Any = batch.validate(suite, result_format=RESULT_FORMAT)
    failed, checked = {}, {}
    for one in result.results:
        failed[one.expectation_config.meta["id"]] = _flagged(name, one)
        checked[one.expectation_config.meta["id"]] = one.result["element_count"]
    if sorted(failed) != sorted(ids) or len(result.results) != len(ids):
        raise RuntimeError(f"{name}: {len(ids)} expectations, but results for {sorted(failed)}")
    return Validation(failed, checked, result, context)


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
