"""Applying a plan to a cluster in memory takes no pauses."""

from __future__ import annotations

import pytest

from durability.apply import preflight, settings, take_back, throttles


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    for module in (preflight, settings, take_back, throttles):
        monkeypatch.setattr(module, "PAUSE", 0)
