"""Programs that compute what `evaluate` computes of topics, in other engines: outcomes and numbers, no sentences.

Each engine measures and decides by itself. What a verdict shows of that is written once, in SQL that both understand
(`bench.peers.verdicts`). `bench.peers.compare` runs them and compares their rows with the lake's.
"""
