"""The same computation as `evaluate` for topics, in other engines: outcomes and numbers, no sentences.

DuckDB and Polars each measure millions of partitions. What follows for a topic is written once, in SQL (`bench.peers.program`).
`bench.peers.compare` runs both and compares their rows with the lake's.
"""
