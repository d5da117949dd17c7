"""Where facts and results are kept: Apache Iceberg tables that Spark and Python share.

`Lake` and its Iceberg library are imported on first use, so that who only needs an `Attempt` or the tables' columns
doesn't pay for them.
"""

from durability.lake.attempt import Attempt

__all__ = ["Attempt", "Lake"]


def __getattr__(name: str):
    if name == "Lake":
        from durability.lake.lake import Lake

        return Lake
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
