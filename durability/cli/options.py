"""What an audit was asked to do, checked before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from durability import resources
from durability.cli.exit_status import FailOn, known_ids
from durability.errors import BadInput, Refused

_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+._-]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/,\[\]]+):([0-9]{1,5})")


@dataclass(frozen=True)
class Given:
    """The options as they were given; None or an empty text: not given. `labels`: by field how a message names the option,
    for instance "--policy " or "POLICY="."""

    bootstrap: str | None = None
    command_config: str | None = None
    cluster: str | None = None
    clusters: str | None = None
    topology: str | None = None
    policy: str | None = None
    waivers: str | None = None
    out: str | None = None
    lake: str | None = None
    fail_on: str | None = None
    baseline: str | None = None
    labels: Mapping[str, str] | None = None

    def text(self, name: str) -> str | None:
        """An option's value without blanks around it; None where none is left."""
        return (getattr(self, name) or "").strip() or None

    def named(self, name: str) -> str:
        """The option and its value, for a message: "--policy x.yaml" or "POLICY=x.yaml"."""
        return f"{self.label(name)}{self.text(name) or ''}"

    def label(self, name: str) -> str:
        return (self.labels or {}).get(name) or f"--{name.replace('_', '-')} "


@dataclass(frozen=True)
class Options:
    """One audit. None of `bootstrap`, `clusters` and `topology`: the embedded cluster.

    `cluster`: what the cluster behind `bootstrap` is called in findings, waivers and history; None: its address.
    `command_config`: a properties file with the security settings of `bootstrap`. `out` is a folder; `lake` a folder or
    an s3:// address; `policy`, `waivers` and `clusters` are files that exist. `known`: ids of the baseline's findings,
    read now, since the audit may replace that file; None: no baseline.
    """

    bootstrap: str | None
    command_config: Path | None
    cluster: str | None
    clusters: Path | None
    topology: Path | None
    policy: Path
    waivers: Path
    out: Path
    lake: str
    fail_on: FailOn
    known: frozenset[str] | None

    @property
    def source(self) -> str:
        """demo, bootstrap, clusters or topology."""
        for name in ("topology", "clusters", "bootstrap"):
            if getattr(self, name):
                return name
        return "demo"


def checked(given: Given) -> Options:
    """The options of an audit.

    Raises Refused for options that contradict each other or name nothing, BadInput for a policy or waivers file that
    can't be used (both are read here, before anything is started).
    """
    sources = [name for name in ("bootstrap", "clusters", "topology") if given.text(name)]
    if len(sources) > 1:
        labels = " and ".join(given.label(name).strip(" =") for name in sources)
        raise Refused(f"{labels} were both given; an audit reads one cluster, a fleet, or documents")
    if given.text("command_config") and "bootstrap" not in sources:
        raise Refused(f"{given.named('command_config')}: it is for the cluster of --bootstrap, which was not given")
    bootstrap = _bootstrap(given) if given.text("bootstrap") else None
    topology = _existing(given, "topology") if given.text("topology") else None
    policies = resources.shipped("policies", *([] if sources else ["demo"]))
    policy = _file(given, "policy", policies / "policy.yaml")
    waivers = _file(given, "waivers", policies / "waivers.yaml")
    _check_policy(policy, waivers)
    out = Path(given.text("out") or "out").absolute()
    lake = given.text("lake") or str(out / "lake" if topology else resources.state_folder() / "lake")
    baseline = _file(given, "baseline") if given.text("baseline") else None
    fail_on = _fail_on(given) or (FailOn.NEW_CRITICAL if baseline else FailOn.NEVER)
    if baseline and fail_on is FailOn.NEVER:
        raise Refused(f"{given.named('baseline')}: nothing is compared with it when --fail-on is never")
    return Options(
        bootstrap=bootstrap,
        command_config=_file(given, "command_config") if given.text("command_config") else None,
        cluster=given.text("cluster"),
        clusters=_file(given, "clusters") if given.text("clusters") else None,
        topology=topology,
        policy=policy,
        waivers=waivers,
        out=_folder(given.label("out"), out),
        lake=lake if "://" in lake else str(_folder(given.label("lake"), Path(lake).absolute())),
        fail_on=fail_on,
        known=known_ids(baseline, fail_on) if baseline else None,
    )


def _bootstrap(given: Given) -> str:
    addresses = [a.strip() for a in (given.text("bootstrap") or "").split(",") if a.strip()]
    for address in addresses:
        matched = _ADDRESS.fullmatch(address)
        if not matched or not 0 < int(matched[1]) < 65536:
            raise Refused(f"{given.named('bootstrap')}: {address} is not host:port; several are separated by commas")
    if not addresses:
        raise Refused(f"{given.named('bootstrap')}: expected host:port")
    return ",".join(addresses)


def _fail_on(given: Given) -> FailOn | None:
    stated = given.text("fail_on")
    if stated is not None and stated not in set(FailOn):
        raise Refused(f"{given.named('fail_on')}: expected one of {', '.join(FailOn)}")
    return FailOn(stated) if stated else None


def _existing(given: Given, name: str) -> Path:
    path = Path(given.text(name) or "")
    if not path.exists():
        raise Refused(f"{given.named(name)}: no such file or folder")
    return path.absolute()


def _file(given: Given, name: str, default: Path | None = None) -> Path:
    path = Path(given.text(name) or default or "")
    if not path.is_file():
        raise Refused(f"{given.label(name)}{path}: no such file")
    return path.absolute()


def _folder(label: str, path: Path) -> Path:
    """The folder, made where missing; Refused when it is a file or can't be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise Refused(f"{label}{path}: {error.filename} is a file, a folder is needed") from error
    except OSError as error:
        raise Refused(f"{label}{path}: the folder can't be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise Refused(f"{label}{path}: no permission to write there")
    return path


def _check_policy(policy: Path, waivers: Path) -> None:
    from durability import policy as policies

    for load, path in ((policies.load_policy, policy), (policies.load_waivers, waivers)):
        try:
            load(path)
        except (PermissionError, UnicodeDecodeError) as error:
            raise BadInput(path, "", f"can't be read: {error}") from error
