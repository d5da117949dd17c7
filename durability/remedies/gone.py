"""Brokers that are lost for good: a plan that moves their replicas to live brokers, and a script that runs it.

Kafka's tool accepts a plan that names no dead broker. But it can't set its throttle then, because it would also set it on the
brokers that replicas leave. So the script sets the throttle on the new replicas' brokers, and --verify deletes it as usual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from durability.catalogue.listing import listed, with_noun
from durability.remedies import plans, throttles
from durability.remedies.cluster import ClusterFacts, Gone
from durability.remedies.commands import TOPICS, UP, Config, Reassign, Unregister, lines, none_running
from durability.remedies.plans import Placement, folder

PLAN, SCRIPT = "brokers+gone.json", "brokers+gone.sh"
"""Files beside the plans of topics. No name of a topic contains a plus."""
RATES = tuple(f"{side}.replication.throttled.rate" for side in ("leader", "follower"))
"""A rate that an earlier reassignment left for leaders would slow the moves down, too."""
ACLS, NO_AUTHORIZER = 'kafka-acls --bootstrap-server "$BOOTSTRAP" --list', "SecurityDisabledException"
"""Fails with this exception if the brokers have no authorizer. With one, Kafka leaves out topics that a principal may not
describe, and nothing shows whether there are any: one with replicas on dead brokers alone is in no log dir that can be read."""


NEW_BROKER = (
    "start a new broker with the same id and empty disks: it copies its replicas from their leaders. First see that no partition"
    " without a leader has this id in its ISR or ELR: the empty replica could lead it, without its records"
)
"""What brings replicas back without the disks of their broker. Seen on 4.3.1: they are in sync again within seconds."""

OTHER_RUNS = (
    "another reassignment runs, or one that an earlier run of this script began, or it is unknown: let it complete, or cancel"
    " it. Then run this script again. It deletes the throttles that an earlier run left."
)


def script_path(cluster: str) -> str:
    """The script's path below the report's folder."""
    return f"plans/{folder(cluster)}/{SCRIPT}"


def replaced(placement: Placement, replicas: Sequence[int], isr: Iterable[int], leader: int | None) -> list[int] | None:
    """The replicas with live brokers in place of those that are down, as many as before and over no fewer racks.

    A replica that is out of sync on a broker with a failed disk is replaced, too: it never gets in sync, and until Kafka 4.3 a
    reassignment waits for it (KAFKA-19975). None if no live replica in sync leads the partition, or if the live brokers don't
    suffice.
    """
    in_sync = set(isr)

    def stays(id: int) -> bool:
        broker = placement.brokers.get(id)
        return broker is not None and bool(broker.live) and (id in in_sync or not broker.failed)

    kept = [b for b in replicas if stays(b)]
    if leader not in kept or leader not in in_sync:
        return None
    chosen = placement.choose(kept, len(replicas), 1)
    if chosen is None:
        return None
    worse = any(new > old for new, old in zip(_fullest(placement, chosen), _fullest(placement, replicas), strict=True))
    return None if worse else chosen


def _fullest(placement: Placement, replicas: Sequence[int]) -> list[int]:
    """How many replicas can be in the fullest rack, in the fullest two, and so on. A replica without a rack may be in any."""
    racks = [broker.rack if (broker := placement.brokers.get(b)) is not None else None for b in replicas]
    named = Counter(rack for rack in racks if rack is not None)
    counts = [n for _, n in named.most_common()] + [0] * (len(replicas) - len(named))
    return [total + racks.count(None) for total in accumulate(counts)]


def written(gone: Gone) -> str:
    """The plan as `plans.written` writes it."""
    return plans.written(gone.moves)


def advice(gone: Gone) -> str:
    """What the finding says of the script."""
    who, verb = with_noun(gone.brokers, "broker"), "is" if len(gone.brokers) == 1 else "are"
    more = "1 more stays" if gone.left == 1 else f"{gone.left:,} more stay"
    moving = "a reassignment is running there, " if gone.running else ""
    stay = (
        f" {more}: {moving}no live replica is in sync, the live brokers or their racks don't suffice, the topic has observers, or"
        " one run plans no more."
        if gone.left
        else ""
    )
    verb_of_moves = "is" if gone.running == 1 else "are"
    running = (
        f" It can't start while {_partitions(gone.running)} {verb_of_moves} being reassigned: first let that complete, or"
        " cancel it."
        if gone.running
        else ""
    )
    return (
        f"If {who} {verb} gone for good, don't wait. {gone.script} moves {_partitions(len(gone.moves))} to"
        f" live brokers, with a throttle.{running}{stay} Read it, and see that their disks have room, before you run it."
    )


def _partitions(number: int) -> str:
    return "1 partition" if number == 1 else f"{number:,} partitions"


def _alone(facts: ClusterFacts) -> list[str]:
    """Ends the script before it changes anything if a reassignment runs. The tool would refuse the plan, and the throttle would
    stay."""
    if facts.led is False:
        return []
    show, none = none_running(facts)
    return [
        f"said=$({show})",
        f"if ! [[ {none} ]]; then",
        f'  echo "{OTHER_RUNS}"; echo "$said"; exit 1',
        "fi",
    ]


def _still_down(brokers: Iterable[int], facts: ClusterFacts, said: str) -> list[str]:
    """Ends the script if one of the brokers is up. Kafka 4.0 and newer may list fenced brokers, too."""
    ids = "|".join(map(str, brokers))
    return [
        line
        for shell in lines(UP, facts)
        for line in (
            f"said=$({shell})",
            f"if grep -oE '[(]id: ({ids}) [^)]*' <<< \"$said\" | grep -v 'isFenced: true'; then",
            f'  echo "{said}"; exit 1',
            "fi",
        )
    ]


def _no_other_throttles(topics: str, facts: ClusterFacts) -> list[str]:
    """Ends the script if brokers or these topics have throttles of others, which --verify would delete."""
    shown = throttles.read(facts)
    if not shown:
        return []
    return [
        *shown,
        f"if ! {throttles.left()}; then",
        *(f"  topics=$({line})" for line in lines(TOPICS, facts)),
        f"  lists=$(for topic in {topics}; do",
        '    grep -E "^Topic: ?$topic[[:space:]].*replication[.]throttled[.]replicas=" <<< "$topics" || [[ $? = 1 ]]',
        "  done)",
        f'  if ! {throttles.none()} || [[ $lists ]]; then echo "$lists"; echo "{throttles.FOREIGN}"; exit 1; fi',
        "fi",
    ]


def _throttles_stay(topics: str, brokers: str, facts: ClusterFacts) -> list[str]:
    """Lets the script name the throttles that stay if it ends before --verify deleted them. topics, brokers: joined by spaces."""
    replicas, rates = "follower.replication.throttled.replicas", listed(RATES)
    of_topics = lines(Config("topics", "$topic", ((replicas, None),)), facts)
    of_brokers = lines(Config("brokers", "$broker", tuple((rate, None) for rate in RATES)), facts)
    return [
        "throttles_stay() {",
        f'  echo "The script ended early. Throttles may stay: {replicas} of topics {topics}, {rates} of brokers {brokers}."',
        '  echo "They slow replication down. Delete them when no reassignment runs:"',
        *(f"  echo 'for topic in {topics}; do {line}; done'" for line in of_topics),
        *(f"  echo 'for broker in {brokers}; do {line}; done'" for line in of_brokers),
        "}",
        "trap throttles_stay EXIT",
    ]


def script(gone: Gone, facts: ClusterFacts) -> str:
    """The script: it sets a throttle, runs the plan, waits, and unregisters the brokers if they have no replica left.

    If topics may be hidden from its principal, it prints the command that unregisters them instead.
    """
    topics = " ".join(dict.fromkeys(topic for topic, _, _ in gone.moves))
    targets = " ".join(map(str, sorted({b for _, _, replicas in gone.moves for b in replicas})))
    throttled = lines(Config("topics", "$topic", (("follower.replication.throttled.replicas", "'*'"),)), facts)
    rate = lines(Config("brokers", "$broker", tuple((rate, str(throttles.RATE)) for rate in RATES)), facts)
    start, wait = lines(Reassign(topics, PLAN, None), facts)
    text = [
        "#!/bin/bash",
        f"# Moves {_partitions(len(gone.moves))} from {listed(gone.brokers)} to live brokers, as {PLAN} states.",
        "# Run it only if these brokers never come back. With --keep it doesn't unregister them: for writes that can't wait.",
        "# It stops at the first command that fails.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        *_still_down(
            gone.brokers, facts, "A broker of this plan is up again. Its replicas catch up by themselves. Audit again."
        ),
        *_alone(facts),
        *_no_other_throttles(topics, facts),
        *_throttles_stay(topics, targets, facts),
        *(f"for topic in {topics}; do {line}; done" for line in throttled),
        *(f"for broker in {targets}; do {line}; done" for line in rate),
        # With set -e, a command before && that fails doesn't end a script.
        f'{start.removesuffix(" &&")} || {{ echo "the plan was not started"; exit 1; }}',
        wait,
        'if [[ $said = *"in progress"* || $said = *"rather than"* || $said != *complete* ]]; then',
        '  echo "not complete, or unknown: run the command with --verify again, which also deletes the throttles"; exit 1',
        "fi",
        "trap - EXIT",
    ]
    unregister = [line for broker in gone.brokers for line in lines(Unregister(broker), facts)]
    if unregister:
        text += [
            "[[ ${1:-} != --keep ]] || exit 0",
            *_still_down(
                gone.brokers, facts, "The moves are complete. A broker is up again, so the brokers stay registered."
            ),
            'topics=$(kafka-topics --bootstrap-server "$BOOTSTRAP" --describe)',
            f'if grep -E "Replicas: ([0-9]+,)*({"|".join(map(str, gone.brokers))})(,|\\s)" <<< "$topics"; then',
            '  echo "these partitions still have replicas there: the brokers stay registered"; exit 1',
            "fi",
            f"if said=$({ACLS} 2>&1) || [[ $said != *{NO_AUTHORIZER}* ]]; then",
            '  echo "The moves are complete. The brokers stay registered: it is unknown whether you see all topics."',
            '  echo "If your principal is a super user, or may describe all topics, run:"',
            *(f"  echo '{line}'" for line in unregister),
            "  exit",
            "fi",
            # A run that was killed may have done it for some.
            *(
                f'said=$({line} 2>&1) || [[ $said = *BrokerIdNotRegistered* ]] || {{ echo "$said"; exit 1; }}; echo "$said"'
                for line in unregister
            ),
        ]
    return "\n".join(text) + "\n"
