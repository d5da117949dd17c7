"""The policy and the waivers that tests of policy files change."""

from __future__ import annotations

import pytest

from durability.errors import BadInput

POLICY = """\
format: durability-policy/1
name: payments
tiers:
  critical: {replication_factor: 3, min_insync_replicas: 2, unclean_leader_election: false, survive: [rack, broker]}
  scratch:
    replication_factor: 1
topics:
  - {match: {internal: true}, tier: critical}
  - {match: {cluster: "dev-.*"}, tier: scratch}
  - {match: {team: "pay.*", topic: "x-.*"}, tier: scratch}
  - {tier: critical}
applications:
  - {match: {group: "pay-.*"}, tier: critical, rack_aware_tags: [zone], standby_replicas: 1}
readings: {prolonged_after: 45m, bouncing: {changes: 4, within: 1d}}
maintenance: [{cluster: eu, from: 2026-11-21T01:00:00Z, to: 2026-11-21T04:00:00+01:00, reason: upgrade}]
"""
WAIVER = """\
format: durability-waivers/1
waivers:
  - control: replica-rack-.*
    cluster: eu
    resource: 'billing\\..*'
    owner: team-billing
    approved_by: head of platform
    reason: no third rack yet
    ticket: OPS-1
    expires: 2027-01-31
"""


def refused(load, loader, text) -> str:
    with pytest.raises(BadInput) as caught:
        load(loader, text)
    return str(caught.value).partition("file.yaml")[2]
