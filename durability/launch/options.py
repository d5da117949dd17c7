"""What an audit was asked to do, checked before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from durability.errors import BadInput, Refused
from durability.launch.airflow_home import ROOT, STATE

NAMED = ("BOOTSTRAP", "CLUSTER", "TOPOLOGY", "POLICY", "WAIVERS", "OUT", "LAKE")
FAIL_ON = ("critical", "warning", "unknown", "never")
_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+._-]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/,\[\]]+):([0-9]{1,5})")


@dataclass(frozen=True)
class Options:
    """One audit. Neither `bootstrap` nor `topology`: the embedded cluster.

    `cluster`: what the one behind `bootstrap` is called in findings, waivers and history; None: its address.
    `out` is a folder; `lake` a folder or an s3:// address; `policy` and `waivers` are files that exist; `fail_on` is
    the least grave outcome that makes the exit status 1.
    """

    bootstrap: str | None
    cluster: str | None
    topology: Path | None
    policy: Path
    waivers: Path
    out: Path
    lake: str
    fail_on: str

    @property
    def source(self) -> str:
        """demo, bootstrap or topology."""
        return "topology" if self.topology else "bootstrap" if self.bootstrap else "demo"


def from_environment(environ: Mapping[str, str], root: Path = ROOT) -> Options:
    """The options that `make audit` passes on; an empty value counts as not given.

    Raises Refused for options that contradict each other or name nothing, BadInput for a policy or waivers file that
    can't be used (both are read here, before anything is started).
    """
    given = {name: value for name in NAMED if (value := environ.get(name, "").strip())}
    if "BOOTSTRAP" in given and "TOPOLOGY" in given:
        raise Refused("BOOTSTRAP and TOPOLOGY were both given; an audit reads either a cluster or documents")
    bootstrap = _bootstrap(given["BOOTSTRAP"]) if "BOOTSTRAP" in given else None
    topology = _topology(Path(given["TOPOLOGY"])) if "TOPOLOGY" in given else None
    policies = root / "policies" / ("demo" if not bootstrap and not topology else "")
    policy = _file("POLICY", Path(given.get("POLICY", policies / "policy.yaml")))
    waivers = _file("WAIVERS", Path(given.get("WAIVERS", policies / "waivers.yaml")))
    _check_policy(policy, waivers)
    out = Path(given.get("OUT", "out")).absolute()
    lake = given.get("LAKE") or str(out / "lake" if topology else STATE / "lake")
    return Options(
        bootstrap=bootstrap,
        cluster=given.get("CLUSTER"),
        topology=topology,
        policy=policy,
        waivers=waivers,
        out=_folder("OUT", out),
        lake=lake if "://" in lake else str(_folder("LAKE", Path(lake).absolute())),
        fail_on=_fail_on(environ.get("FAIL_ON", "").strip() or "never"),
    )


def _fail_on(value: str) -> str:
    if value not in FAIL_ON:
        raise Refused(f"FAIL_ON={value}: expected one of {', '.join(FAIL_ON)}")
    return value


def _bootstrap(value: str) -> str:
    addresses = [a.strip() for a in value.split(",") if a.strip()]
    for address in addresses:
        matched = _ADDRESS.fullmatch(address)
        if not matched or not 0 < int(matched[1]) < 65536:
            raise Refused(f"BOOTSTRAP={value}: {address} is not host:port; several are separated by commas")
    if not addresses:
        raise Refused(f"BOOTSTRAP={value}: expected host:port")
    return ",".join(addresses)


def _topology(path: Path) -> Path:
    if not path.exists():
        raise Refused(f"TOPOLOGY={path}: no such file or folder")
    return path.absolute()


def _file(option: str, path: Path) -> Path:
    if not path.is_file():
        raise Refused(f"{option}={path}: no such file")
    return path.absolute()


def _folder(option: str, path: Path) -> Path:
    """The folder, made where missing; Refused when it is a file or can't be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise Refused(f"{option}={path}: {error.filename} is a file, a folder is needed") from error
    except OSError as error:
        raise Refused(f"{option}={path}: the folder can't be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise Refused(f"{option}={path}: no permission to write there")
    return path


def _check_policy(policy: Path, waivers: Path) -> None:
    from durability import policy as policies

    for load, path in ((policies.load_policy, policy), (policies.load_waivers, waivers)):
        try:
            load(path)
        except (PermissionError, UnicodeDecodeError) as error:
            raise BadInput(path, "", f"can't be read: {error}") from error
