"""Remedies for settings of topics, brokers and the cluster: elections, defaults, throttles, disks."""

from __future__ import annotations

from durability.remedies import elr
from durability.remedies.commands import CONFIGS, RUNNING, cluster_config, comment, script, topic_config
from durability.remedies.finding import Finding

UNCLEAN = "unclean.leader.election.enable"


def unclean_off(finding: Finding) -> str:
    """Switches unclean leader election off on the topic if it has an override, else cluster-wide."""
    if finding["evidence"]["own"]:
        return topic_config(finding["resource"], UNCLEAN, "false")
    return cluster_config(UNCLEAN, "false")


def unclean_stated(finding: Finding) -> str:
    """States the value cluster-wide: the controllers' static value can't be read."""
    return script(
        comment("This sets it cluster-wide, where the auditor can read it:"), cluster_config(UNCLEAN, "false")
    )


def defaults(finding: Finding) -> str:
    """The remedy for each weak default. It doesn't change min.insync.replicas while that could wipe an ELR."""
    weak, required, evidence = finding["observed"]["problems"], finding["required"], finding["evidence"]
    unsafe = evidence["elr_at_risk"]
    weak_min = "min.insync.replicas" in weak
    waits = unsafe and (weak_min or len(evidence["min_insync_replicas"]) > 1)
    advice = []
    if "default.replication.factor" in weak:
        advice.append(
            f"Set default.replication.factor={required['default_replication_factor']} in server.properties of every broker and"
            " controller, and restart them one after the other"
        )
    if "auto.create.topics.enable" in weak:
        advice.append(
            "Set auto.create.topics.enable=false there too, unless producers should create topics with these defaults"
        )
    if "brokers-disagree" in weak and not waits:
        advice.append("Set the same values on all brokers and controllers")
    if waits:
        advice.append(elr.WAIT)
    commands = []
    if weak_min and not unsafe:
        commands.append(cluster_config("min.insync.replicas", required["min_insync_replicas"]))
    if UNCLEAN in weak:
        commands.append(cluster_config(UNCLEAN, "false"))
    return script(*map(comment, advice), *commands) if commands else ". ".join(advice)


def log_dirs(finding: Finding) -> str:
    """Shows the broker's offline log directories."""
    return script(
        comment("This shows the offline log dir. Replace its disk, then restart the broker."),
        f'kafka-log-dirs --bootstrap-server "$BOOTSTRAP" --describe --broker-list {finding["resource"]}',
    )


def leftovers(finding: Finding) -> str:
    """Lists a stuck reassignment, or deletes leftover throttles.

    kafka-configs fails if it should delete a setting that isn't set. So each command names only settings that are set.
    """
    if finding["observed"]["stuck"]:
        return script(
            comment(
                "Bring back the brokers that it waits for, or cancel the reassignment: run --cancel with the file that started"
                " it."
            ),
            RUNNING,
        )
    named = [("topics", t["topic"], t["throttles"]) for t in finding["evidence"]["topics"]]
    named += [("brokers", b["broker"], b["throttles"]) for b in finding["evidence"]["brokers"]]
    return script(
        *(
            f"{CONFIGS} --entity-type {kind} --entity-name {name} --delete-config {','.join(keys)}"
            for kind, name, keys in named
        )
    )
