"""Messages and remedies of findings, made of hand-written verdicts."""

from __future__ import annotations

from durability.findings import words


def test_brokers_that_fail_again_and_again_are_not_only_called_overloaded():
    """Brokers killed twice within the period give the same readings as brokers under load."""
    observed = {"changes": 3, "since": "2026-11-26T10:00:00Z"}
    required = {"within_seconds": 21_600, "changes_below": 3}
    finding = {"control": "at-min-isr-over-time", "outcome": "FAIL", "category": "bouncing", "provider": "self"}
    finding |= {"observed": observed, "required": required, "evidence": {"widest_gap_seconds": None}}
    finding |= {"cause": "broker:4 in and out of sync", "resource": "orders", "resource_type": "topic"}
    assert "an overloaded broker or network, or brokers that failed again and again" in words.message(finding)
    assert "(broker:4 in and out of sync): brokers that restart again and again" in words.remediation(finding)
