"""What a loss breaks, as bits: one per view and class of `durability.lake.loss_tables.VIEWS`."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.lake.loss_tables import VIEWS

BITS = {f"{view}_{name}": 1 << bit for bit, (view, name) in enumerate((v, c) for v, cs in VIEWS.items() for c in cs)}
"""By view and class: its bit."""
ALL = sum(BITS.values())


def has(bits: Column | str, some: int) -> Column:
    """Is one of these bits set?"""
    return (F.col(bits) if isinstance(bits, str) else bits).bitwiseAND(F.lit(some)) != 0
