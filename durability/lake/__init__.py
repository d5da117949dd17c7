"""Where facts and results are kept: Apache Iceberg tables that Spark and Python share.

`Lake` and its Iceberg library are imported on first use, so that who only needs an `Attempt` or the tables' columns
doesn't pay for them.
"""

from typing import TYPE_CHECKING, Any

from durability.lake.attempt import Attempt

if TYPE_CHECKING:
    from durability.lake.lake import Lake

__all__ = ["Attempt", "Lake"]


def __getattr__(name: str) -> Any:
    if name == "Lake":
        from durability.lake.lake import Lake

        return Lake
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
