"""`make bench PARTITIONS=`: a live cluster is collected, and the same partitions are read with Kafka's own tool."""

from __future__ import annotations

from bench import collect


def test_collecting_is_compared_with_kafka_topics_on_the_same_partitions(kafka):
    collect.fill(kafka, 45, prefix="bench-collect")
    kafka.wait_for_full_isr()
    results = collect.measured(kafka, 1)
    assert results["partitions"] >= 45 and results["topics"] >= 5 and results["brokers"] == 6
    for name, (seconds,) in results["seconds"].items():
        assert results["medians"][name] == seconds > 0
    assert results["ratio"] == round(results["medians"]["collection"] / results["medians"]["kafka-topics"], 3)
