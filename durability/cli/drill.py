"""`kafka-durability drill`: rehearses a loss on an embedded cluster, and compares what happens with the prediction.

Only processes on this machine are started and killed. No address of another cluster is read or used.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability import resources
from durability.cli import audit, exit_status, inputs, job_log
from durability.cli.console import Console
from durability.cli.options import Given
from durability.errors import Refused, Unreachable
from durability.plain import plain, plural
from durability.plan.lose import LISTED, Item
from durability.plan.plan import from_text, to_text
from durability.report import drill as report
from durability.report.data.losses import serves

if TYPE_CHECKING:
    from durability.embedded_kafka.cluster import LocalCluster
    from durability.embedded_kafka.ledger import Ledger
    from durability.embedded_kafka.miniature import Miniature, Original
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.plan.lose import Loss
    from durability.runtime.processes import Session
    from durability.steps.settings import Settings
    from durability.topology import Topology

EXAMPLE = ("docs", "examples", "eu-payments.json")
NAME = "drill"
"""The embedded cluster's name."""
ROUNDS = 2
"""Records that are written to each partition before the loss."""
QUIET_SECONDS, TIMED_OUT_SECONDS = 1.0, 8.0
"""How long to wait once the lost brokers are fenced; and without a quorum, which fences no broker, until sessions have ended."""
NO_QUORUM = "without a quorum, metadata shows leaders that are dead"
NO_BROKER = "no broker is left to be read"


@dataclass(frozen=True)
class Request:
    """What is rehearsed: the document, the loss of its nodes, its miniature, and where drill.json goes.

    lake: the lake that keeps a row of it; None if no lake was given.
    """

    topology: Topology
    loss: Loss
    miniature: Miniature
    out: Path
    lake: str | None = None


def request(given: Given) -> Request:
    """The validated options of a drill. Refused for what can't be rehearsed; nothing is written before that."""
    from durability.embedded_kafka import miniature
    from durability.plan import lose

    asked, label = given.text("lose"), given.label("lose")
    items = lose.parse(asked, label) if asked else ()
    topology = _document(given)
    original = miniature.Original(topology)
    if not items:
        raise Refused(plain(f"{label.strip()} is empty: name what to lose; there are {_nodes(original)}"))
    loss = lose.resolve(items, original.brokers, original.controllers, label)
    version, elr = given.text("version") or None, _on_or_off(given, "elr")
    if version and version not in miniature.VERSIONS:
        raise Refused(f"{given.named('version')}: expected one of {', '.join(miniature.VERSIONS)}")
    built = miniature.rebuild(original, loss.brokers, loss.controllers, version, elr)
    if unplaced := sorted({id for ids in loss.unplaced.values() for id in ids}):
        note = f"nodes without a known rack, which may be in the lost one, are kept: {', '.join(map(str, unplaced))}"
        built = replace(built, not_rebuilt=(*built.not_rebuilt, note))
    out, lake = given.folder("out", Path(given.text("out") or "out").absolute()), given.text("lake") or None
    if lake and "://" not in lake:
        lake = str(given.folder("lake", Path(lake).absolute()))
    return Request(topology, loss, built, out, lake)


def _nodes(original: Original) -> str:
    """What can be lost, as items."""
    racks = {row["rack"] for row in (*original.brokers, *original.voters) if row["rack"]}
    items = [*(f"broker:{row['broker']}" for row in original.brokers), *(f"rack:{rack}" for rack in sorted(racks))]
    items += [f"controller:{row['controller']}" for row in original.voters]
    return ", ".join(items[:LISTED]) + (f" and {len(items) - LISTED} more" if len(items) > LISTED else "")


def _document(given: Given) -> Topology:
    """The document that the options name, else the shipped example. Of a folder, the cluster's newest one."""
    from durability import topology

    path = Path(given.text("topology")).absolute() if given.text("topology") else resources.shipped(*EXAMPLE)
    if not path.exists():
        raise Refused(f"{given.named('topology')}: no such file or folder")
    found = topology.read(path)
    names = sorted({document.cluster for document in found})
    cluster = given.text("cluster") or None
    if cluster is None and len(names) > 1:
        raise Refused(f"{path} has several clusters; name one with --cluster: {', '.join(names)}")
    if cluster is not None and cluster not in names:
        raise Refused(f"{path} has no document of {cluster}; there are {', '.join(names)}")
    return max((d for d in found if d.cluster == (cluster or names[0])), key=lambda document: document.captured_at)


def _on_or_off(given: Given, name: str) -> bool | None:
    text = given.text(name).lower()
    if text not in ("", "on", "off"):
        raise Refused(f"{given.named(name)}: expected on or off")
    return None if not text else text == "on"


def run(asked: Request, environ: Mapping[str, str] = os.environ) -> int:
    """Rehearses the loss. Returns 0 if all of it was as predicted and the ledger is whole, 1 if not, 2 if it failed."""
    from durability.runtime import jars, out_lock, processes

    console = Console()
    if asked.lake:
        from durability.runtime import run_lock

        with run_lock.held(asked.lake):  # what can't be used is refused before anything is started
            _open_lake(asked.lake)
    jars.java_command()
    release = f"kafka-{asked.miniature.version}"
    if not jars.is_fetched(release) or not jars.is_fetched("spark"):
        console.line(f"Fetching jars into {resources.cache_folder()}, once")
    log = asked.out / "logs" / "drill.log"
    with (
        out_lock.held([asked.out]),
        processes.Session("durability-drill-") as session,
        session.adopting(),
    ):
        rehearsal = _Rehearsal(asked, session, log, console, environ)
        drill = job_log.logged(log, console, rehearsal.run)
        if drill is None:
            return exit_status.INCOMPLETE
        path = report.write(drill, asked.out)
        if asked.lake:
            record(asked.lake, drill)
    console.line()
    for line in report.summary(drill, path):
        console.line(line)
    return exit_status.DONE if report.holds(drill) else exit_status.REACHED


def _open_lake(location: str) -> Lake:
    from durability.lake import Lake

    return Lake.open(location)


def record(location: str, drill: Mapping[str, Any]) -> None:
    """Append a rehearsal to the lake's table `drills`. drill: the content of drill.json."""
    from durability.lake.drill_table import REHEARSAL
    from durability.report.data.drill import Comparison
    from durability.runtime import run_lock
    from durability.steps import drill as steps

    run_id = f"rehearsal:{uuid.uuid4().hex}"
    seen = {"cluster": drill["cluster"], "captured_at": from_text(drill["seen_at"]), "snapshot_id": None}
    found = Comparison(compared=drill["compared"], agreed=drill["agreed"])
    with run_lock.held(location):
        steps.record(_open_lake(location), drill, seen, (run_id, f"{run_id}:1"), found, None, REHEARSAL)


@dataclass
class _Rehearsal:
    """One drill. `run` starts the embedded cluster, and stops it whatever happens."""

    asked: Request
    session: Session
    log: Path
    console: Console
    environ: Mapping[str, str]

    def run(self) -> dict[str, Any]:
        """The content of drill.json."""
        from durability.embedded_kafka.cluster import LocalCluster
        from durability.embedded_kafka.ledger import Ledger
        from durability.report.data import drill as data
        from durability.steps.summary import report_step

        built, step = self.asked.miniature, partial(report_step, reporter=self.console)
        names = [made.name for made in built.stand_ins]
        with self.console.running(), LocalCluster(built.spec) as kafka:
            with step("rebuild") as summary:
                ledger = Ledger(kafka.bootstrap.split(","))
                self._rebuild(kafka, ledger, names)
                nodes = plural(len(built.brokers), "broker")
                summary.text = f"{nodes}, {plural(len(names), 'placement')}, Kafka {built.version}"
            rows, predicted = self._predicted(kafka)
            kept = (predicted["quorum"] or {}).get("kept") is not False
            with step("lose") as summary:
                self._lose(kafka, kept)
                summary.text = f"killed {', '.join(map(str, built.lost)) or 'nothing'}"
            with step("read again") as summary:
                seen, unseen = self._seen(kafka, ledger, names, kept)
                seen_at = to_text(datetime.now(UTC).replace(microsecond=0))
            found = data.compare(rows, seen, data.FIELDS, unseen)
            with step("bring back") as summary:
                kept_records = self._ledger(kafka, ledger, rows)
                summary.text = f"{kept_records['found']} of {kept_records['acknowledged']} records"
        topology, loss = self.asked.topology, self.asked.loss
        stated = {
            "cluster": topology.cluster,
            "snapshot_id": topology.sha256,
            "captured_at": to_text(topology.captured_at),
            "lose": loss.described(),
            "quorum": predicted["quorum"],
        }
        return report.document(stated, seen_at, found, miniature=built.to_dict(), ledger=kept_records)

    def _rebuild(self, kafka: LocalCluster, ledger: Ledger, names: Collection[str]) -> None:
        """Creates the placements, stops what was down, and writes what the ledger remembers."""
        from durability.embedded_kafka import seed

        built = self.asked.miniature
        seed.create_topics(kafka, built.topics)
        kafka.wait_for_full_isr()
        self._kill(kafka, built.down, kept=True)
        ledger.bootstrap = kafka.addresses
        for _ in range(ROUNDS):
            ledger.write(names)

    def _predicted(self, kafka: LocalCluster) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The predicted rows, under the document's names, with `isr_after`; and the content of whatif.json."""
        from durability.lake.tables import BROKERS, PARTITIONS
        from durability.report import whatif as of_prediction
        from durability.steps import audit as steps
        from durability.steps import whatif
        from durability.steps.summary import report_step

        built, folder = self.asked.miniature, self.session.folder
        what = inputs.cluster(folder, kafka.bootstrap, NAME)
        settings = self._settings(what.clusters)
        published, _ = steps.snapshots(settings, lambda name: what.connect(name, self.environ), self.console)
        snapshot = whatif.chosen(published, None)
        items = [Item("broker", str(id)) for id in built.lost if id in built.brokers]
        items += [Item("controller", str(id)) for id in built.lost if id in built.controllers]
        with report_step("predict", self.console) as summary:
            prediction = whatif.prepare(settings, snapshot, items, "", f"drill:{NAME}", f"drill:{NAME}:1")
            files = whatif.predict(settings, prediction, self._submit, summary)
        lake = settings.open_lake()
        live = {row["broker"] for row in lake.facts(BROKERS, snapshot).to_pylist() if row["live"]} - set(built.lost)
        isr = {row["topic"]: row["isr"] for row in lake.facts(PARTITIONS, snapshot).to_pylist()}
        rows = [
            {**row, **self._place(row["topic"]), "isr_after": _isr_after(row, isr[row["topic"]], live)}
            for row in of_prediction.rows(lake, prediction.plan)
        ]
        return rows, json.loads(files["whatif.json"].read_text(encoding="utf-8"))

    def _place(self, name: str) -> dict[str, Any]:
        made = self._stand_ins[name]
        return {"topic": made.topic, "partitions": [made.partition]}

    @property
    def _stand_ins(self) -> dict[str, Any]:
        return {made.name: made for made in self.asked.miniature.stand_ins}

    def _settings(self, clusters: Path) -> Settings:
        from durability.steps.settings import Settings

        policies, folder = resources.shipped("policies"), self.session.folder
        return Settings(
            policy=policies / "policy.yaml",
            waivers=policies / "waivers.yaml",
            clusters=clusters,
            out=folder / "predicted",
            lake=str(folder / "lake"),
            topology=None,
        )

    def _submit(self, lake: Lake, plan: Plan, losses: Mapping[str, Any]) -> None:
        from durability.cli.whatif import JOB
        from durability.runtime import spark

        stated = self.session.folder / "lose.json"
        stated.write_text(json.dumps(losses), encoding="utf-8")
        audit.submit(self.session, self.log, spark.environment(self.environ), lake, plan, JOB, "--lose", str(stated))

    def _lose(self, kafka: LocalCluster, kept: bool) -> None:
        self._kill(kafka, self.asked.miniature.lost, kept)

    def _kill(self, kafka: LocalCluster, nodes: Iterable[int], kept: bool) -> None:
        """Kills nodes at once, and waits until the brokers among them are fenced. kept: does the quorum keep its majority?"""
        nodes = list(nodes)
        if not nodes:
            return
        kafka.kill(nodes)
        if not kept:
            time.sleep(TIMED_OUT_SECONDS)
        elif kafka.addresses:
            kafka.wait_for_loss_of(set(nodes) & set(kafka.spec.brokers))
            time.sleep(QUIET_SECONDS)

    def _seen(
        self, kafka: LocalCluster, ledger: Ledger, names: Sequence[str], kept: bool
    ) -> tuple[dict[tuple[str, int], dict[str, Any]], dict[str, str]]:
        """What is so after the loss, by the document's partition; and why leader and ISR were not seen, if they were not."""
        why = NO_QUORUM if not kept else NO_BROKER if not kafka.addresses else None
        facts = {} if why else _facts(kafka.addresses)
        ledger.bootstrap = kafka.addresses or kafka.bootstrap.split(",")
        seen = {}
        for name, error in ledger.write(names).items():
            made = self._stand_ins[name]
            answer = serves(error or "NONE")
            does = {"serves": "rejects" if answer == "unknown" else answer, "error": error}
            seen[made.topic, made.partition] = facts.get(name, {}) | does
        return seen, dict.fromkeys(("leader", "isr"), why) if why else {}

    def _ledger(self, kafka: LocalCluster, ledger: Ledger, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Starts everything again, the lost nodes first, and looks for the acknowledged records."""
        from durability.embedded_kafka import ledger as ledgers

        built, why = self.asked.miniature, None
        try:
            # What was down before lacks records. It must not be the first to return, and to lead.
            kafka.restart(set(built.lost) - set(built.down))
            kafka.restore()
        except Unreachable as error:
            why = f"because not every replica came back: {str(error).splitlines()[0]}"
        ledger.bootstrap = kafka.addresses or kafka.bootstrap.split(",")
        deleted = {(row["topic"], row["partitions"][0]) for row in rows if row["deleted"]}
        places = {name: (made.topic, made.partition) for name, made in self._stand_ins.items()}
        may_miss = {name for name, place in places.items() if place in deleted}
        return ledgers.result(ledger.acknowledged, ledger.read(), places, may_miss, why)


def _isr_after(row: Mapping[str, Any], before: Collection[int] | None, live: Collection[int]) -> list[int] | None:
    """The members of the ISR that the prediction implies; None where it implies none. live: the brokers that are up afterwards.

    Without a leader, the order of fencing decides who stays in the ISR. Without a quorum, no ISR shrinks.

    >>> row = {"leader_after": 2, "quorum": {"kept": True}}
    >>> _isr_after(row, [1, 2, 3], [2, 3, 4]), _isr_after(row, [1], [2, 3])
    ([2, 3], [2])
    >>> _isr_after(row | {"leader_after": None}, [1], [2]) is None
    True
    """
    if row["leader_after"] is None or before is None or row["quorum"]["kept"] is not True:
        return None
    return [id for id in before if id in live] or [row["leader_after"]]


def _facts(bootstrap: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Leader and ISR by topic, as far as they could be read."""
    from durability.collect import collect
    from durability.lake import rows

    topology = collect(NAME, {"bootstrap.servers": ",".join(bootstrap)})
    found = {}
    for row in rows.build(topology, topology.sha256, topology.sha256)["partitions"].to_pylist():
        unread = set(row["unreadable"] or ())
        facts = {"isr": row["isr"]} if row["isr"] is not None else {}
        found[row["topic"]] = facts if "leader" in unread or row["contradiction"] else facts | {"leader": row["leader"]}
    return found
