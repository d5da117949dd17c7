"""Policies and waivers as tests state them: the YAML of their files without the line `format`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from durability.policy import load_policy, load_waivers
from durability.policy.model import Policy, Waiver
from tests import ROOT

Read = TypeVar("Read")


def policy(text: str = "", **keys: Any) -> Policy:
    """The policy of a policy.yaml with this text; keys: more of the file's keys, as JSON has them."""
    return _read(load_policy, "format: durability-policy/1\n" + text, keys)


def waivers(text: str = "", **keys: Any) -> list[Waiver]:
    """The waivers of a waivers.yaml with this text; keys: more of the file's keys, as JSON has them."""
    return _read(load_waivers, "format: durability-waivers/1\n" + text, keys)


def shipped() -> Policy:
    """The default policy, policies/policy.yaml."""
    return load_policy(ROOT / "policies" / "policy.yaml")


def _read(load: Callable[[Path], Read], text: str, keys: dict[str, Any]) -> Read:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stated.yaml"
        path.write_text(text + "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items()))
        return load(path)
