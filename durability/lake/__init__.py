"""The lake of facts and results: Apache Iceberg tables that Spark and Python share.

`Lake` and pyiceberg are imported on first use: `Attempt` and the tables' columns need neither.
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
