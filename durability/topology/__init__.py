"""The topology document, `kafka-topology/1`: one cluster at one moment, recorded, planned or read from the wire."""

from durability.topology.document import FORMAT, Topology, canonical
from durability.topology.reading import read
from durability.topology.validation import validate

__all__ = ["FORMAT", "Topology", "canonical", "read", "validate"]
