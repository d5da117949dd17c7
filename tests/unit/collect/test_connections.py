"""Connections of runs without Airflow: what a user reads who has none."""

from __future__ import annotations

import pytest

from durability.collect.connections import from_environment
from durability.errors import Refused


@pytest.mark.parametrize(
    ("name", "hint"), [("eu_live", False), ("1eu", False), ("eu-live", True), ("eu.live", True), ("\xe9u", True)]
)
def test_a_missing_connection_names_a_variable_that_a_shell_can_set_or_another_way(name, hint):
    with pytest.raises(Refused) as refused:
        from_environment(name, {})
    assert f"set AIRFLOW_CONN_{name.upper()} to JSON such as" in str(refused.value)
    assert ("A shell can't set this name: state `connection` in the clusters file" in str(refused.value)) is hint
