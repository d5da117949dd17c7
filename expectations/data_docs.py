"""Great Expectations' Data Docs for one validation: small pages whatever the size of the fleet.

Topic names are strangers' text and the pages don't escape what they are given, so it is escaped here.
"""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.gx import Validation

SHOWN_ROWS = 20
SITE = "audit"


def write_data_docs(validation: Validation, names: list[tuple[str, str]], plan: Plan, folder: Path) -> None:
    """Writes the site of one validation run to `folder`, replacing what is there.

    `names`: cluster and topic by row. Each expectation shows at most `SHOWN_ROWS` of the rows it flagged; `validation`
    is trimmed to that.
    """
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    result, context = validation.result, validation.context
    for one in result.results:
        rows = validation.failed[one.expectation_config.meta["id"]][:SHOWN_ROWS]
        one.result.pop("unexpected_index_list", None)
        one.result["partial_unexpected_list"] = [html.escape(" / ".join(names[row])) for row in rows]
    # It becomes a folder's name, and colons are none that every file system takes.
    run = RunIdentifier(run_name=plan.run_id.replace(":", "-"), run_time=plan.started_at)
    result.meta["run_id"] = run
    key = ValidationResultIdentifier(ExpectationSuiteIdentifier(result.suite_name), run, "topic_posture")
    context.validation_results_store.set(key, result)
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(partial)}
    index = {"class_name": "DefaultSiteIndexBuilder"}
    context.add_data_docs_site(SITE, {"class_name": "SiteBuilder", "site_index_builder": index, "store_backend": store})
    context.build_data_docs(site_names=[SITE])
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
