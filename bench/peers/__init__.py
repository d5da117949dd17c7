"""Programs that compute what `evaluate` computes of topics, in other engines: outcomes and numbers, no sentences.

DuckDB and Polars each measure millions of partitions by themselves. What follows for a topic is written once, in SQL
(`bench.peers.program`). `bench.peers.compare` runs both and compares their rows with the lake's.
"""
