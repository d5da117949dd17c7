"""The options of an audit, validated before anything is started."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from durability import resources
from durability.cli.exit_status import FailOn, known_findings
from durability.errors import BadInput, Refused

if TYPE_CHECKING:
    import typer

_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+._-]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/,\[\]]+):([0-9]{1,5})")


@dataclass(frozen=True)
class Given:
    """Options as given, by name. None or blanks mean not given.

    labels: how messages name an option, for example "--policy " or "POLICY=".
    """

    values: Mapping[str, str | None]
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ctx: typer.Context) -> Given:
        """The options of a command. An option from the environment is named by its variable."""
        labels = {}
        for option in ctx.command.params:
            source = ctx.get_parameter_source(option.name or "")
            from_environment = source is not None and source.name == "ENVIRONMENT"
            labels[option.name or ""] = f"{option.envvar}=" if from_environment else f"{option.opts[0]} "
        return cls(ctx.params, labels)

    def text(self, name: str) -> str:
        """An option's value without surrounding blanks. Empty if not given."""
        return (self.values.get(name) or "").strip()

    def label(self, name: str) -> str:
        return self.labels.get(name) or f"--{name.replace('_', '-')} "

    def named(self, name: str) -> str:
        """The option and its value, for a message: "--policy x.yaml" or "POLICY=x.yaml"."""
        return f"{self.label(name)}{self.text(name)}"

    def file(self, name: str, default: Path | None = None) -> Path | None:
        """The file that an option names, else `default`. Raises Refused if it doesn't exist."""
        path = Path(self.text(name)) if self.text(name) else default
        if path is not None and not path.is_file():
            raise Refused(f"{self.label(name)}{path}: no such file")
        return path and path.absolute()

    def folder(self, name: str, path: Path) -> Path:
        """The folder that an option names, created if missing. Raises Refused if it can't be used."""
        try:
            resources.create_private(path)
        except (FileExistsError, NotADirectoryError) as error:
            raise Refused(f"{self.label(name)}{path}: {error.filename} is a file, a folder is needed") from error
        except OSError as error:
            raise Refused(f"{self.label(name)}{path}: the folder can't be made: {error.strerror}") from error
        if not os.access(path, os.W_OK | os.X_OK):
            read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            reason = "its file system is read-only" if read_only else "no permission to write there"
            raise Refused(f"{self.label(name)}{path}: {reason}")
        return path


@dataclass(frozen=True)
class Options:
    """One audit. Without `bootstrap`, `clusters` and `topology`, it audits the embedded cluster.

    cluster: name of the cluster behind `bootstrap` in findings, waivers and history. None: its address.
    command_config: a properties file with security settings for `bootstrap`.
    policy, waivers, clusters: existing files.
    out: a folder. lake: a folder or an s3:// address.
    framework: the id of a framework to whose controls the reports are cut; None for all controls.
    signing_key: a file with the key that signs the evidence.
    made: which folders of `out` and `lake` were made for this command.
    known: the baseline's findings (`known_findings`); None without a baseline. They are read first, because the audit may
        replace the file.
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
    known: Mapping[str, int] | None
    framework: str | None = None
    signing_key: Path | None = None
    made: tuple[Path, ...] = ()

    @property
    def source(self) -> str:
        """demo, bootstrap, clusters or topology."""
        for name in ("topology", "clusters", "bootstrap"):
            if getattr(self, name):
                return name
        return "demo"


def checked(given: Given, lake: Literal["written", "read", "unused"] = "written") -> Options:
    """The validated options of an audit. Policy and waivers files are read here.

    lake: what the command does with it. "read": without an input it reads the lake, which must exist then. "unused": the
        command runs no Spark job and writes nothing.

    Raises Refused for options that contradict each other or name nothing, and without Java for a Spark job. Raises BadInput for a
    wrong policy or waivers file. Nothing is created then.
    """
    from durability.policy import load_policy, load_waivers
    from durability.runtime import jars
    from durability.topology import reading

    sources = [name for name in ("bootstrap", "clusters", "topology") if given.text(name)]
    if len(sources) > 1:
        labels = " and ".join(given.label(name).strip(" =") for name in sources)
        raise Refused(f"{labels} were both given; an audit reads one cluster, a fleet, or documents")
    if given.text("command_config") and "bootstrap" not in sources:
        raise Refused(f"{given.named('command_config')}: it is for the cluster of --bootstrap, which was not given")
    topology = Path(given.text("topology")).absolute() if given.text("topology") else None
    if topology and not topology.exists():
        raise Refused(f"{given.named('topology')}: no such file or folder")
    out = Path(given.text("out") or "out").absolute()
    location = given.text("lake") or str(out / "lake" if topology else resources.state_folder() / "lake")
    is_demo = not sources
    if lake == "read" and not sources:
        location = existing_lake(given)
        is_demo = _has_demo_alone(location, given.text("cluster"))
    policies = resources.shipped("policies", *(["demo"] if is_demo else []))
    if topology:  # before anything is fetched or created: it may be the wrong folder
        reading.files(topology, [out, *([] if "://" in location else [Path(location)])])
    baseline = given.file("baseline")
    fail_on = _fail_on(given) or (FailOn.NEW_CRITICAL if baseline else FailOn.NEVER)
    if baseline and fail_on is FailOn.NEVER:
        raise Refused(f"{given.named('baseline')}: nothing is compared with it when --fail-on is never")
    written = lake != "unused"
    if written:
        jars.java_command()
    folders = [out, *([] if "://" in location else [Path(location).absolute()])] if written else []
    missing = tuple(folder for folder in folders if not folder.exists())
    return Options(
        bootstrap=_bootstrap(given),
        command_config=given.file("command_config"),
        cluster=given.text("cluster") or None,
        clusters=given.file("clusters"),
        topology=topology,
        policy=usable(load_policy, given.file("policy", policies / "policy.yaml")),
        waivers=usable(load_waivers, given.file("waivers", policies / "waivers.yaml")),
        fail_on=fail_on,
        known=known_findings(baseline, fail_on) if baseline else None,
        framework=framework(given),
        signing_key=_signing_key(given),
        # Last, so that nothing is created if an option is refused.
        out=given.folder("out", out) if written else out,
        lake=str(given.folder("lake", Path(location).absolute())) if written and "://" not in location else location,
        made=missing,
    )


def existing_lake(given: Given) -> str:
    """The address of the lake to read, by default that of cluster audits. Nothing is created: one that isn't there is refused."""
    location = given.text("lake") or str(resources.state_folder() / "lake")
    if "://" in location:
        return location
    location = os.path.abspath(location)
    if not os.path.isfile(os.path.join(location, "catalog.db")) and not os.environ.get("DURABILITY_CATALOG"):
        raise Refused(f"{given.label('lake')}{location}: no lake there; name the one that audits write to")
    if not os.path.isdir(location):
        raise Refused(f"{given.label('lake')}{location}: no such folder")
    return location


def _has_demo_alone(location: str, cluster: str) -> bool:
    """Whether a lake's snapshots, or those of the cluster, are of the embedded cluster, which has a policy of its own."""
    from durability.embedded_kafka.demo import CLUSTER_ID
    from durability.lake import Lake
    from durability.lake.tables import SNAPSHOTS

    lake = Lake.open(location)
    if not lake.has(SNAPSHOTS):
        return False
    names = {row["cluster"] for row in lake.snapshots(cluster or None, "accepted", "full")}
    ids = lake.kafka_cluster_ids(names)
    return bool(names) and all(name in ids and ids[name][0] == CLUSTER_ID for name in names)


def _bootstrap(given: Given) -> str | None:
    addresses = [a.strip() for a in given.text("bootstrap").split(",") if a.strip()]
    for address in addresses:
        matched = _ADDRESS.fullmatch(address)
        if not matched or not 0 < int(matched[1]) < 65536:
            raise Refused(f"{given.named('bootstrap')}: {address} is not host:port; several are separated by commas")
    if given.text("bootstrap") and not addresses:
        raise Refused(f"{given.named('bootstrap')}: expected host:port")
    return ",".join(addresses) or None


def _fail_on(given: Given) -> FailOn | None:
    stated = given.text("fail_on")
    if stated and stated not in set(FailOn):
        raise Refused(f"{given.named('fail_on')}: expected one of {', '.join(FailOn)}")
    return FailOn(stated) if stated else None


def framework(given: Given) -> str | None:
    """The id of the framework that the options name; None without one. Raises Refused for an unknown one."""
    from durability.policy import shipped_frameworks
    from durability.policy.frameworks import named

    stated = given.text("framework")
    try:
        return named(shipped_frameworks(), stated).id if stated else None
    except Refused as error:
        raise Refused(f"{given.named('framework')}: {error}") from None


def _signing_key(given: Given) -> Path | None:
    """The file with the key, after reading it. An audit that can't sign as asked isn't started."""
    if not given.text("signing_key"):
        return None
    from durability.evidence import keys

    path = given.file("signing_key")
    assert path is not None, "it is given"
    keys.from_file(path)
    return path


def usable(load: Callable[[Path], object], path: Path | None) -> Path:
    """The path of a policy, waivers or clusters file, after reading it. Raises BadInput if it is wrong."""
    assert path is not None, "it is given, or has a default"
    try:
        load(path)
    except (PermissionError, UnicodeDecodeError) as error:
        raise BadInput(path, "", f"can't be read: {error}") from error
    return path
