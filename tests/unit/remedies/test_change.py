"""Plans of change without Spark: order, batches, undo and the states in between, checked by a reading of their own."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from durability.catalogue.model import REFUSED
from durability.remedies import throttles as of_brokers
from durability.remedies.change import draft, guards, proof, regress, scripts, settings, states, way_back
from durability.remedies.change.assemble import WITHOUT_EFFECT, assemble
from durability.remedies.change.brokers import of_rows
from durability.remedies.change.describe import before, notes
from durability.remedies.change.model import (
    Limits,
    Move,
    Setting,
    Step,
    TopicSettings,
    Wanted,
    raised_further,
    topic_ids,
)
from durability.remedies.change.settings import OUT_OF_SYNC, of_target
from durability.remedies.cluster import KEY, ClusterFacts, Restored
from durability.remedies.moves.model import Partition, Problem, Target
from durability.remedies.moves.solve import solve
from durability.remedies.target import UNEVEN
from tests.support.topology import document

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
STANDARD = Limits()
FACTS = ClusterFacts((4, 3), (4, 3), led=True, elr=False, highest_min_isr=1, lowest_min_isr=1)


def aims(topic: dict, copies: int, least: int | None, live: set[int], **other) -> dict:
    """`evidence.target` of a topic whose target is this replication factor and min.insync.replicas."""
    factors = [len(p["replicas"]) for p in topic["partitions"]]
    now, own = int(topic["configs"].get(MIN_ISR, "1")), MIN_ISR in topic["configs"]
    led = [len(p["isr"]) for p in topic["partitions"] if p["leader"] is not None]
    return {
        "replication_factor": max(copies, min(factors)),
        "min_insync_replicas": least,
        "reassign": copies > min(factors),
        "replication_factor_now": min(factors),
        "its_replication_factor": min(factors),
        "min_insync_replicas_now": now,
        "min_insync_replicas_source": "topic" if own else "default",
        "min_insync_replicas_enforced": min(now, min(factors)),
        "highest_min_insync_replicas": now,
        "smallest_led_isr": min(led, default=None),
        "minimum_unknown": False,
        "most_replicas": max(factors),
        "offline": sum(p["leader"] is None for p in topic["partitions"]),
        "replicas_down": sorted({b for p in topic["partitions"] for b in p["replicas"]} - live),
        "inherited_least": 1,
        "too_few_brokers": False,
        "elr_at_risk": False,
        "elr_at_risk_in_cluster": False,
        "reassigning_in_cluster": 0,
        "acked_racks": None,
        "leans": False,
        **other,
    }


def finding(
    topic: str, target: dict | None, facts=FACTS, control="replication-factor", severity="critical", **evidence
):
    return {
        "id": f"{control}:{topic}",
        "cluster": "c",
        "resource_type": "topic",
        "resource": topic,
        "control": control,
        "outcome": "FAIL",
        "severity": severity,
        "provider": "self",
        "evidence": {"target": target, **evidence},
        KEY: facts,
    }


def inputs(doc: dict, targets: dict[str, tuple[int, int | None]], facts=FACTS, limits=STANDARD, more=(), **aim):
    """Inputs for topics with a replication factor and min.insync.replicas as targets."""
    live = {b["id"] for b in doc["brokers"] if b["live"]}
    topics = {topic["name"]: topic for topic in doc["topics"]}
    made = {name: aims(topics[name], *wanted, live, **aim) for name, wanted in targets.items()}
    postures = {
        name: {
            "topic": name,
            "tier": "t",
            "reassign": target["reassign"],
            "target_replication_factor": target["replication_factor"],
            "target_min_insync_replicas": target["min_insync_replicas"],
            "target_racks": 1,
            "target_acked_racks": None,
            "target_own_racks": None,
            "target_rack_balance": None,
        }
        for name, target in made.items()
    }
    rows = [
        {
            "broker": b["id"],
            "rack": b["rack"],
            "live": b["live"],
            "fenced": False,
            "log_dirs": None,
            "offline_log_dirs": 0,
            "configs": None,
        }
        for b in doc["brokers"]
    ]
    found = [*(finding(name, target, facts) for name, target in made.items()), *more]
    return draft.Inputs(doc, of_rows(rows), postures, {"t": {}}, found, facts, limits)


class Reader:
    """Plays a plan's files as an operator would, and counts the partitions that a step newly stops."""

    def __init__(self, doc: dict, capped: bool = True):
        self.partitions = {
            (t["name"], p["partition"]): (tuple(p["replicas"]), tuple(p["isr"]))
            for t in doc["topics"]
            for p in t["partitions"]
        }
        self.configs = {(t["name"], key): value for t in doc["topics"] for key, value in t["configs"].items()}
        self.live = {b["id"] for b in doc["brokers"] if b["live"]}
        self.capped, self.stopped = capped, []

    def stops(self) -> set:
        found = set()
        for (topic, number), (replicas, isr) in self.partitions.items():
            least = int(self.configs.get((topic, MIN_ISR), "1"))
            if len(isr) < (min(least, len(replicas)) if self.capped else least):
                found.add((topic, number))
        return found

    def run(self, folder: str, step: str, texts: dict[str, str]) -> None:
        earlier = self.stops()
        for command in re.findall(r"kafka-[^;&|()]* --(?:alter|execute) [^;&|()]*", texts[f"{folder}/{step}.sh"]):
            words = command.split()
            if words[0] == "kafka-configs":
                topic = words[words.index("--entity-name") + 1]
                if "--add-config" in words:
                    key, value = words[words.index("--add-config") + 1].split("=")
                    self.configs[topic, key] = value
                else:
                    del self.configs[topic, words[words.index("--delete-config") + 1]]
            else:
                rows = json.loads(texts[words[words.index("--reassignment-json-file") + 1]])["partitions"]
                moves = {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in rows}
                was = dict(self.partitions)
                for name, new in moves.items():
                    old, isr = was[name]
                    self.partitions[name] = (*new, *(b for b in old if b not in new)), isr
                self.stopped += sorted(self.stops() - earlier)
                for name, new in moves.items():
                    old, isr = was[name]
                    # No release waits for a replica that stays (KAFKA-19975).
                    self.partitions[name] = new, tuple(b for b in new if b in self.live and (b in isr or b not in old))
        self.stopped += sorted(self.stops() - earlier)

    @property
    def state(self):
        return {name: replicas for name, (replicas, _) in self.partitions.items()}, dict(self.configs)


def texts(change, facts=FACTS) -> dict[str, str]:
    ids = topic_ids(change.planned)
    return dict(scripts.data_files(change.steps)) | dict(scripts.script_files(change.steps, facts, ids))


def random_cluster(seed: int) -> tuple[dict, dict]:
    pick = random.Random(seed)
    brokers = pick.randint(4, 9)
    lines, targets = ["topic leader replicas isr min bytes"], {}
    for number in range(pick.randint(1, 8)):
        name, least = f"t{number}", pick.choice(["-", "1", "2", "3"])
        copies = pick.randint(1, 3)
        for _ in range(pick.randint(1, 6)):
            replicas = pick.sample(range(1, brokers + 1), copies)
            isr = replicas if pick.random() < 0.8 else replicas[: pick.randint(1, copies)]
            shown = [",".join(map(str, ids)) for ids in (replicas, isr)]
            lines.append(f"{name} {isr[0]} {shown[0]} {shown[1]} {least} {pick.randint(1, 90)}")
        if pick.random() < 0.8:
            targets[name] = (3, pick.choice([2, 2, None]))
    racks = " ".join(f"{n}:az{n % 3}" for n in range(1, brokers + 1))
    return document("\n".join(lines), brokers=racks, cluster="c"), targets


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("release", [(4, 3), (3, 6)])
def test_no_step_stops_writes_and_the_undo_restores_everything(seed, release):
    facts = ClusterFacts(release, release, led=True, elr=False)
    doc, targets = random_cluster(seed)
    most = seed % 100 + 1
    asked = inputs(doc, targets, facts, Limits(partitions=3, bytes=most))
    original = json.dumps(doc)
    made = draft.draft(asked)
    assert json.dumps(doc) == original
    assert made.change.harms == ()
    written = texts(made.change, facts)
    reader = Reader(doc, capped=release >= (3, 7))
    first = reader.state
    for step in made.change.steps:
        if step.kind == "lower-min-isr" and step.why in WITHOUT_EFFECT:
            least = {setting.topic: int(setting.value) for setting in step.settings}
            copies = {name: len(ids) for name, (ids, _) in reader.partitions.items() if name[0] in least}
            assert all(n <= least[topic] for (topic, _), n in copies.items()), "else its script would refuse it"
        reader.run("steps", step.id, written)
    assert reader.stopped == []
    planned = Reader(made.change.planned).state
    assert reader.state == planned
    in_sync = {name: set(isr) for name, (_, isr) in Reader(made.change.planned).partitions.items()}
    assert in_sync == {name: set(isr) for name, (_, isr) in reader.partitions.items()}

    for step in reversed(made.change.steps):
        reader.run("undo", step.id, written)
    assert reader.state == first

    # The same way back as a plan of its own.
    back = way_back.undo(made.change.planned, before(made.change), facts, Limits())
    # Topics that rejected writes with all replicas in sync, before the plan, stay.
    rejecting = {topic for topic, _ in back.left_out if topic is not None}
    assert rejecting <= {topic for topic, _ in Reader(doc, capped=release >= (3, 7)).stops()}
    then, now = Reader(back.change.planned).state, Reader(made.change.planned).state
    for restored, expected, kept in zip(then, first, now, strict=True):
        assert restored == {name: (kept if name[0] in rejecting else expected)[name] for name in restored}
    assert back.change.harms == ()

    for step in made.change.steps:
        arriving = Counter()
        for move in step.moves:
            arriving.update(dict.fromkeys(move.added, move.bytes))
        assert len(step.moves) <= 3
        assert len(step.moves) == 1 or max(arriving.values(), default=0) <= most
    reached = defaultdict(list)
    for (topic, _), replicas in planned[0].items():
        reached[topic].append(replicas)
    left = {topic for topic, _ in made.left_out}
    for topic, (copies, _) in targets.items():
        assert topic in left or all(len(set(replicas)) >= copies for replicas in reached[topic])


def test_the_way_back_leaves_out_a_topic_that_was_recreated():
    doc = document("topic replicas min\na 1 2\nb 1 2\nc 1 2", brokers="1 2 3")
    for topic in doc["topics"][:2]:
        topic["id"] = f"id-of-{topic['name']}"
    asked = inputs(doc, {name: (3, 2) for name in "abc"})
    made = draft.draft(asked)
    stated = before(made.change)
    assert stated["topic_ids"] == {"a": "id-of-a", "b": "id-of-b"}  # of the others it is unknown
    now = made.change.planned
    now["topics"][0]["id"], now["topics"][2]["id"] = "another", "any"
    back = way_back.undo(now, stated, asked.facts, Limits())
    assert back.left_out == (("a", way_back.RECREATED),)
    assert {topic for step in back.change.steps for topic in step.topics} == {"b", "c"}
    unread = now | {"unreadable": [{"path": "/topics/a/id", "reason": "CHANGED"}]}
    assert way_back.undo(unread, stated, asked.facts, Limits()).left_out == ()


def test_the_way_back_leads_to_no_state_that_rejects_writes():
    doc = document("topic replicas min\na 1,2 3\nb 1,2 2", brokers="1 2 3 4")
    old = replace(FACTS, release=(3, 6), newest=(3, 6))
    for facts, left_out in ((FACTS, {}), (old, {"a": way_back.REJECTING.format(3, 2)})):
        made = draft.draft(inputs(doc, {"a": (3, 2), "b": (3, 2)}, facts))
        back = way_back.undo(made.change.planned, before(made.change), facts, STANDARD)
        assert (dict(back.left_out), back.change.harms) == (left_out, ())
        assert "b" in {topic for step in back.change.steps for topic in step.topics}


def test_the_way_back_leaves_out_a_topic_that_a_step_would_harm():
    doc = document("topic replicas min\na 1,2 2\nb 1,2 2", brokers="1 2 3 4")
    made = draft.draft(inputs(doc, {"a": (3, 2), "b": (3, 2)}))
    # A replica that lags now would be one of too few.
    partition = made.change.planned["topics"][1]["partitions"][0]
    partition["isr"] = [1, *set(partition["replicas"]) - {1, 2}]
    back = way_back.undo(made.change.planned, before(made.change), FACTS, STANDARD)
    assert (dict(back.left_out), back.change.harms) == ({"b": way_back.HARMFUL.format(0)}, ())
    assert {topic for step in back.change.steps for topic in step.topics} == {"a"}


def test_settings_come_with_their_batch_and_worst_first():
    doc = document(
        """
        topic  replicas  min
        a      1         2
        b      1         2
        b      2         2
        """,
        brokers="1 2 3",
    )
    asked = inputs(doc, {"a": (3, 2), "b": (3, 2)}, limits=Limits(partitions=1))
    asked.targeted[0]["severity"] = "warning"
    steps = draft.draft(asked).change.steps
    assert [(step.kind, *step.topics) for step in steps[:7]] == [
        ("lower-min-isr", "b"),
        ("reassign", "b"),
        ("reassign", "b"),
        ("raise-min-isr", "b"),
        ("lower-min-isr", "a"),
        ("reassign", "a"),
        ("raise-min-isr", "a"),
    ]
    assert [step.after for step in steps[:3]] == [(), (steps[0].id,), (steps[1].id,)]


def test_the_undo_of_a_setting_tells_an_override_from_an_inherited_value():
    doc = document(
        """
        topic      replicas  min
        own        1         3
        inherited  1         -
        """,
        brokers="1 2 3",
    )
    inherited = next(topic for topic in doc["topics"] if topic["name"] == "inherited")
    inherited["configs"], inherited["config_sources"] = {MIN_ISR: "3"}, {MIN_ISR: "cluster-default"}
    made = draft.draft(inputs(doc, {"own": (3, 3), "inherited": (3, None)}))
    rows = {row["topic"]: row["value"] for row in before(made.change)["settings"]}
    assert rows == {"own": "3", "inherited": None}
    written = texts(made.change)
    [raised] = [step for step in made.change.steps if step.kind == "raise-min-isr"]
    assert "--entity-name inherited --delete-config min.insync.replicas" in written[f"steps/{raised.id}.sh"]
    [lowered] = [step for step in made.change.steps if step.kind == "lower-min-isr"]
    assert "--entity-name inherited --delete-config min.insync.replicas" in written[f"undo/{lowered.id}.sh"]
    assert "--entity-name own --add-config min.insync.replicas=3" in written[f"undo/{lowered.id}.sh"]
    # The planned topology shows the inherited value again.
    after = {topic["name"]: topic for topic in made.change.planned["topics"]}
    assert after["inherited"]["configs"][MIN_ISR] == "3"
    assert after["inherited"]["config_sources"][MIN_ISR] == "cluster-default"


def test_min_isr_stays_while_it_could_wipe_an_elr():
    doc = document(
        """
        topic  leader  replicas  isr  elr  min
        t      1       1,2       1    2    3
        """,
        brokers="1 2 3",
    )
    made = draft.draft(inputs(doc, {"t": (3, 2)}, elr_at_risk=True))
    assert made.change.steps == ()
    [(topic, why)] = made.left_out
    assert topic == "t" and "wipe the ELR" in why
    facts = ClusterFacts((4, 3), (4, 3), led=True, elr=True)
    rows = {"placements": [], "settings": [{"topic": "t", "name": MIN_ISR, "value": "1"}]}
    assert "wipe the ELR" in way_back.undo(doc, rows, facts, Limits()).left_out[0][1]
    # A collector writes an ELR that it can't read as empty.
    doc["topics"][0]["partitions"][0]["elr"] = []
    assert way_back.undo(doc, rows, facts, Limits()).left_out == ()
    doc["unreadable"] = [{"path": "/topics/t/partitions/0/elr", "reason": "NOT_STATED"}]
    assert "wipe the ELR" in way_back.undo(doc, rows, facts, Limits()).left_out[0][1]


def test_of_a_barred_topic_a_setting_that_depends_on_no_move_stays_in_the_plan():
    doc = document("topic replicas min\nt 1,3 2\nu 1 1\nv 1 1", brokers="1 2 3")
    doc["topics"][0]["configs"][UNCLEAN] = "true"
    unclean = finding("t", None, control="unclean-leader-election", own=True)
    asked = inputs(doc, {"t": (3, 2), "u": (2, 1), "v": (2, 1)}, more=[unclean])
    made = draft.draft(replace(asked, barred={"t": "it refutes the plan", "v": "so does this", "gone": "and this"}))
    assert {move.topic for step in made.change.steps for move in step.moves} == {"u"}
    assert [s for step in made.change.steps for s in step.settings] == [Setting("t", UNCLEAN, "true", "false")]
    # So the topic isn't left out: a note says what is missing.
    assert (made.left_out, made.notes) == ((("v", "so does this"),), {"t": "it refutes the plan"})


@pytest.mark.parametrize(
    "survive, voters, leaders",
    [
        (["rack"], "az1 az2 az1", {2, 4}),  # with az1, the majority is lost: nobody would elect other leaders
        (["rack"], "az1 az2 az3", {1, 2, 3, 4}),
        (["broker"], "az1 az2 az1", {1, 2, 3, 4}),
    ],
)
def test_no_leader_moves_to_a_rack_that_takes_the_majority(survive, voters, leaders):
    lines = "\n".join(["t 2,4"] * 8)
    doc = document(f"topic replicas\n{lines}", brokers="1:az1 2:az2 3:az1 4:az2")
    doc["cluster"]["quorum"] = {
        "leader": 100,
        "voters": [{"id": 100 + n, "rack": rack, "lag_ms": 0} for n, rack in enumerate(voters.split())],
        "observers": [],
    }
    made = draft.draft(replace(inputs(doc, {"t": (3, None)}), required={"t": {"survive": survive}}))
    [planned] = made.change.planned["topics"]
    assert {p["replicas"][0] for p in planned["partitions"]} == {p["leader"] for p in planned["partitions"]} == leaders
    assert all(len(p["replicas"]) == 3 for p in planned["partitions"])


@pytest.mark.parametrize("survive, leaders", [(["broker", "rack"], {2, 3, 4}), (["rack"], {1, 2, 3, 4})])
def test_no_leader_moves_to_the_broker_that_takes_the_majority_alone(survive, leaders):
    """Broker 4 is lost with the only voter if the rack is. If one broker is, only broker 1 takes the voter with it."""
    lines = "\n".join(["t 4,1"] * 12)
    doc = document(f"topic replicas\n{lines}", brokers="1:az1 4:az1 2:az2 3:az3", quorum="1:az1")
    made = draft.draft(replace(inputs(doc, {"t": (3, None)}), required={"t": {"survive": survive}}))
    [planned] = made.change.planned["topics"]
    assert {p["replicas"][0] for p in planned["partitions"]} == leaders
    assert all(len(p["replicas"]) == 3 for p in planned["partitions"])


@pytest.mark.parametrize(("inherited", "value"), [(2, None), (3, "2")])
def test_a_minimum_lowered_in_a_rack_outage_is_inherited_again(inherited, value):
    doc = document("topic replicas min\nt 1,2,3 1", brokers="1 2 3")
    facts = replace(FACTS, highest_min_isr=inherited, lowest_min_isr=inherited, restores={"t": Restored(2, own=False)})
    made = draft.draft(inputs(doc, {"t": (3, 2)}, facts))
    assert [(s.was, s.value) for step in made.change.steps for s in step.settings] == [("1", value)]
    [planned] = made.change.planned["topics"]
    assert planned["configs"].get(MIN_ISR) == value


@pytest.mark.parametrize(
    "elr, of_brokers, of_controllers, harms",
    [
        (1, "2", {}, 0),  # the controllers' default is recorded cluster-wide, and overrides the brokers' value
        (1, "1", {MIN_ISR: "2"}, 1),
        (1, "2", None, 1),  # without described controllers, the brokers' value is all that is known
        (0, "2", {}, 1),
        (0, "1", {MIN_ISR: "2"}, 0),
    ],
)
def test_with_elr_the_controllers_value_is_what_topics_inherit(elr, of_brokers, of_controllers, harms):
    doc = document("topic replicas isr\nt 1 1", brokers="1 2 3")
    doc["cluster"]["features"] = {"eligible.leader.replicas.version": elr}
    if of_controllers is not None:
        doc["cluster"]["controllers"] = [{"id": 9, "configs": of_controllers}]
    for broker in doc["brokers"]:
        broker["configs"] = {MIN_ISR: of_brokers}
    step = Step("01-reassign", "reassign", "", moves=(Move("t", 0, (1,), (1, 2)),))
    assert len(states.play(json.loads(json.dumps(doc)), [step], FACTS)) == harms
    assert settings.min_isr(doc) == {"t": 2 if harms else 1}


@pytest.mark.parametrize("required, moved", [({}, {("t", 1)}), ({"replica_racks": 1}, {("t", 0), ("t", 1)})])
def test_replicas_without_a_rack_move_only_if_the_tier_asks_for_racks(required, moved):
    doc = document("topic replicas\nt 3,4\nt 1", brokers="1:az1 2:az2 3 4")
    asked = replace(inputs(doc, {"t": (2, None)}), required={"t": required})
    made = draft.draft(asked)
    assert {(m.topic, m.partition) for step in made.change.steps for m in step.moves if m.added} == moved


@pytest.mark.parametrize(
    "replicas, wanted, raised, share",
    [
        ("1,2,3", (3, 2), 2, 3 / 6),  # it doesn't move
        ("1", (2, 2), None, 1 / 6),  # it moves, and its minimum stays: it would have no headroom
    ],
)
def test_copysets_count_the_minimum_that_the_steps_lead_to(replicas, wanted, raised, share):
    doc = document(f"topic replicas min\nt {replicas} 1", brokers="1 2 3 4")
    made = draft.draft(inputs(doc, {"t": wanted}))
    raises = [int(s.value) for step in made.change.steps for s in step.settings]
    assert raises == ([] if raised is None else [raised])
    pairs = made.solution.copysets.losses_after[0]
    assert pairs.writes == pytest.approx(share)


def test_a_remaining_finding_of_a_moved_topic_has_its_message_after_the_plan():
    made = draft.draft(inputs(document("topic replicas min\nt 1,2 1", brokers="1 2 3"), {"t": (3, 1)}))
    assert [step.kind for step in made.change.steps] == ["reassign"]
    assert made.why(finding("t", None), "its remediation", "2 of 3 in sync").endswith(". After them: 2 of 3 in sync")
    assert made.why(finding("t", None), "its remediation").endswith("which doesn't fix this")


@pytest.mark.parametrize("replicas, now, least, settings", [("1,2", 1, 2, []), ("1,2,3", 1, 2, [("1", "2")])])
def test_no_minimum_is_raised_to_the_number_of_replicas(replicas, now, least, settings):
    doc = document(f"topic replicas min\nt {replicas} {now}", brokers="1 2 3")
    made = draft.draft(inputs(doc, {"t": (1, least)}))
    assert [(s.was, s.value) for step in made.change.steps for s in step.settings] == settings
    assert settings or "number of its replicas" in made.why(finding("t", None), None)
    # A raise asks whether all replicas are in sync, and comes after the moves of other topics.
    assert [step.kind for step in made.change.steps] == ["raise-min-isr"] * len(settings)
    guarded = [text for path, text in texts(made.change).items() if path.startswith("steps/")]
    assert all("--under-replicated-partitions" in text for text in guarded) and len(guarded) == len(settings)
    beside = document(f"topic replicas min\nt {replicas} {now}\nu 1 1", brokers="1 2 3")
    steps = draft.draft(inputs(beside, {"t": (1, least), "u": (2, 1)})).change.steps
    assert [step.kind for step in steps if step.kind != "elect-leaders"] == [
        "reassign",
        *["raise-min-isr"] * len(settings),
    ]
    # With moves, what was there before them comes back.
    doc = document("topic replicas min\nt 1 2", brokers="1 2 3")
    made = draft.draft(inputs(doc, {"t": (3, 3)}))
    assert [(s.was, s.value) for step in made.change.steps for s in step.settings] == [("2", "1"), ("1", "2")]
    assert made.change.harms == ()


@pytest.mark.parametrize(
    "minimum, copies, kinds",
    [
        (3, 3, [("set-config", "3", "2")]),  # below what is enforced
        (5, 3, [("set-config", "5", "2")]),
        (3, 4, [("reassign",), ("set-config", "3", "2")]),
        (5, 4, [("lower-min-isr", "5", "3"), ("reassign",), ("set-config", "3", "2")]),
    ],
)
def test_a_target_below_what_is_enforced_comes_after_the_moves(minimum, copies, kinds):
    doc = document(f"topic replicas min\nt 1,2,3 {minimum}\nu 1 1", brokers="1 2 3 4")
    made = draft.draft(inputs(doc, {"t": (copies, 2), "u": (2, 1)}))
    of_t = [step for step in made.change.steps if "t" in step.topics and step.kind != "elect-leaders"]
    assert [(step.kind, *(v for s in step.settings for v in (s.was, s.value))) for step in of_t] == kinds
    order = [step.kind for step in made.change.steps]
    assert order.index("reassign") < order.index("set-config") and made.change.harms == ()
    # Its undo raises the value, so all replicas must be in sync.
    assert "--under-replicated-partitions" in texts(made.change)[f"undo/{of_t[-1].id}.sh"]
    # Where brokers enforce no more than the target, nothing weakens: it comes first.
    doc = document("topic replicas min\nt 1,2 5\nu 1 1", brokers="1 2 3 4")
    made = draft.draft(inputs(doc, {"t": (2, 2), "u": (2, 1)}))
    assert [step.kind for step in made.change.steps][:2] == ["lower-min-isr", "reassign"]


def test_moves_of_dead_brokers_wait_for_them():
    doc = document(
        """
        topic  leader  replicas  isr
        t      1       1,4       1
        u      1       1,2       1,2
        """,
        brokers="1 2 3 4!",
    )
    made = draft.draft(inputs(doc, {"t": (3, None), "u": (3, None)}))
    steps = {step.id: step for step in made.change.steps}
    [wait] = [step for step in steps.values() if step.kind == "wait"]
    assert wait.brokers == (4,) and next(iter(steps)) == wait.id
    for step in steps.values():
        dead = any(4 in (*move.before, *move.after) for move in step.moves)
        assert (wait.id in step.after) is dead
    said = texts(made.change)[f"steps/{wait.id}.sh"].splitlines()
    listing = "Topic: t Partition: 0 Leader: 1 Replicas: {} Isr: 1"
    for replicas, status in (("1,4", 1), ("1,14", 0), ("41,2", 0), ("4", 1)):
        stub = f"kafka-topics() {{ echo '{listing.format(replicas)}'; }}\n"
        assert subprocess.run(["bash", "-c", stub + "\n".join(said)], capture_output=True).returncode == status


@pytest.mark.parametrize(
    "change",
    [
        *("observers", "running", "unread", "unknown", "provider", "leaderless"),
        # What a document states of these places is unknown.
        *("/topics/t/partitions/0/replicas", "/topics/0/partitions/0/isr", "/topics/0/partitions/0/removing"),
        *("/topics", "/topics/t/partitions/1", "/topics/t/partitions/0/leader"),
    ],
)
def test_a_cluster_that_cannot_be_planned_is_left_out_with_the_reason(change):
    doc, facts, known = document("topic replicas\nt 1", brokers="1 2 3"), FACTS, True
    if change == "observers":
        doc["topics"][0]["configs"]["confluent.placement.constraints"] = '{"observers":[{"count":1}]}'
    elif change == "running":
        doc["topics"][0]["partitions"][0]["adding"] = [2]
    elif change == "unread":
        doc["topics"][0]["partitions"][0]["replicas"] = None
    elif change.startswith("/"):
        doc["unreadable"] = [{"path": change, "reason": "TIMEOUT"}]
    elif change == "unknown":
        known = False
    elif change == "provider":
        facts = ClusterFacts(provider="confluent", led=True)
    else:
        facts = ClusterFacts(led=False)
    asked = draft.Inputs(doc, (), {}, {}, [finding("t", None)], facts, Limits(), known)
    made = draft.draft(asked)
    [(topic, why)] = made.left_out
    assert topic is None and why and made.change.steps == () and made.solution is None
    assert made.why(asked.targeted[0], "its remediation") == why


def listed(names: str) -> str:
    """The body of a stub of kafka-topics that shows these topics."""
    return "printf '" + "".join(rf"Topic: {name}\tConfigs:\n" for name in names) + "'"


def own_values(least: dict[str, int]) -> str:
    """The body of a stub of kafka-configs that shows these overrides of min.insync.replicas."""
    said = "".join(rf"Dynamic configs for topic {t} are:\n  {MIN_ISR}={n} sensitive=false\n" for t, n in least.items())
    return f"[[ $* != *--describe* ]] || printf '{said}'"


def test_scripts_are_shell_that_stops_at_the_first_failure(tmp_path):
    doc = document("topic replicas min\na 1 2\nb 1 2", brokers="1 2 3")
    facts = ClusterFacts((4, 3), (4, 3), led=True, elr=True)
    made = draft.draft(inputs(doc, {"a": (3, 2), "b": (3, 2)}, facts))
    for path, text in texts(made.change, facts).items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        if path.endswith(".sh"):
            subprocess.run(["bash", "-n", file], check=True)
            changes = any(f"--{what}" in text for what in ("alter", "execute", "election-type"))
            assert text.endswith(f" &&\n{scripts.SHOWN}\n") == changes, "the next script's checks see each change"
    [lowered, moves, raised, *_] = made.change.steps
    assert [step.kind for step in (lowered, moves, raised)] == ["lower-min-isr", "reassign", "raise-min-isr"]

    def run(path: str, seen: str = "ab", **answers: str) -> tuple[int, list[str]]:
        """A script's exit status, and which changes it asked for.

        seen: the topics that kafka-topics shows. answers: bodies of functions in place of Kafka's tools.
        """
        tools = {"kafka_topics": "", "kafka_configs": "", "kafka_reassign_partitions": ""} | answers
        if not tools["kafka_configs"]:
            least = 1 if lowered.id not in path else 2
            tools["kafka_configs"] = own_values(dict.fromkeys("ab", least))
        tools["kafka_topics"] = f"[[ $* = *-partitions* ]] || {listed(seen)}; {tools['kafka_topics'] or ':'}"
        said = tmp_path / "said"
        said.write_text("")
        note = f'case "$*" in *--alter*|*--execute*|*--cancel*) echo "$*" >> {said};; esac;'
        stubs = "".join(f"{name.replace('_', '-')}() {{ {note} {body or ':'}; }}\n" for name, body in tools.items())
        script = "sleep() { :; }\n" + stubs + (tmp_path / path).read_text()
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True).returncode, [
            line.split("--", 2)[2].split()[0] for line in said.read_text().splitlines()
        ]

    # A setting that can't be changed ends the script.
    assert run(f"steps/{lowered.id}.sh", kafka_configs=own_values(dict(a=2, b=2)) + "; [[ $* != *' a '* ]]") == (
        1,
        ["alter"],
    )
    # So does an ELR, or a partition that is under-replicated when min.insync.replicas shall rise.
    shown = "\\tTopic: b\\tPartition: 0\\tReplicas: 12\\tIsr: 1\\tElr: {}\\tLastKnownElr: 1\\n"
    elr = f"[[ $* = *-partitions* ]] || printf '{shown}'"
    for members, status in (("12", 1), ("3,12", 1), ("2", 0), ("2,3", 0), ("", 0)):
        done = run(f"steps/{lowered.id}.sh", kafka_topics=elr.format(members))
        assert done == (status, [] if status else ["alter"] * 2), "only replicas count"
    both = "echo Reassignment of partition a-0 is completed.; echo Reassignment of partition b-0 is completed."
    lagging = "[[ $* != *under-replicated* ]] || printf 'Topic: b\\tPartition: 0\\n'"
    path = f"steps/{raised.id}.sh"
    assert run(path, kafka_reassign_partitions=both, kafka_topics=lagging) == (1, [])
    # A partition that was added since the plan has fewer replicas than the new value. It is in sync, and would take no write.
    added = (
        "[[ $* = *-partitions* ]] || printf '\\tTopic: b\\tPartition: 7\\tLeader: 2\\tReplicas: 2\\tIsr: 2\\tElr: \\n'"
    )
    assert run(path, kafka_reassign_partitions=both, kafka_topics=added) == (0, ["alter"] * 2), (
        "it counts at most its replicas"
    )
    assert run(path, kafka_reassign_partitions=both) == (0, ["alter", "alter"])
    old = ClusterFacts((3, 6), (3, 6), led=True)
    (tmp_path / "steps" / "old.sh").write_text(texts(made.change, old)[path])
    assert run("steps/old.sh", kafka_reassign_partitions=both, kafka_topics=added) == (1, [])
    two = added.replace("Isr: 2", "Isr: 2,11")
    assert run("steps/old.sh", kafka_reassign_partitions=both, kafka_topics=two) == (0, ["alter"] * 2)
    # What another person set since isn't overwritten, and a topic that has more replicas since keeps its minimum.
    for value, status in ((1, 0), (2, 0), (3, 1), (21, 1)):
        for script in (f"steps/{lowered.id}.sh", path):
            done = run(script, kafka_reassign_partitions=both, kafka_configs=own_values({"a": 1, "b": value}))
            assert done == (status, [] if status else ["alter"] * 2)
        done = run(f"undo/{raised.id}.sh", kafka_configs=own_values({"a": 1, "b": value}))
        assert done == (status, ["alter"] * (2 - status)), "others are restored"
    assert run(path, kafka_reassign_partitions=both, kafka_configs=own_values({"a": 1})) == (1, []), (
        "b has the cluster's"
    )
    assert run(f"undo/{raised.id}.sh", kafka_configs=own_values({"a": 1})) == (1, ["alter"])
    above = "[[ $* = *-partitions* ]] || printf 'Topic: b\\tConfigs: x=1,min.insync.replicas={}\\n'"
    for value, status in ((1, 0), (2, 0), (3, 1), (10, 1)):
        done = run(path, seen="a", kafka_reassign_partitions=both, kafka_topics=above.format(value))
        assert done == (status, [] if status else ["alter"] * 2), "a cluster-wide value is above it"
    more = "[[ $* = *-partitions* ]] || printf '\\tTopic: b\\tPartition: 0\\tReplicas: {}\\tIsr: 2\\tElr: \\n'"
    assert run(f"steps/{lowered.id}.sh", kafka_topics=more.format("2,3")) == (1, [])
    assert run(f"steps/{lowered.id}.sh", kafka_topics=more.format("2")) == (0, ["alter"] * 2)
    one = "echo Reassignment of partition a-0 is completed.; echo There is no active reassignment of partition b-0"
    assert run(path, kafka_reassign_partitions=one) == (1, [])
    # A topic that can't be described isn't changed: nothing is known of its replicas.
    for path in (f"{folder}/{step.id}.sh" for folder in ("steps", "undo") for step in (lowered, moves, raised)):
        assert run(path, seen="", kafka_reassign_partitions=both) == (1, [])
    assert run(f"steps/{lowered.id}.sh", seen="b") == (1, [])
    assert run(f"undo/{lowered.id}.sh", seen="b") == (1, ["alter"])
    assert "echo 'Topic a was deleted, or you may not describe it.'" in (tmp_path / f"undo/{lowered.id}.sh").read_text()
    # No replica is removed while a later step's min.insync.replicas is set.
    there = f"case $* in *--verify*steps/*) {both};; esac"
    path = f"undo/{moves.id}.sh"
    risen = own_values({"a": 1, "b": 2})
    assert run(path, kafka_reassign_partitions=there, kafka_configs=risen) == (1, [])
    assert run(path, kafka_reassign_partitions=there) == (1, ["execute"])


@pytest.mark.parametrize(
    ("answer", "recreated"),
    [
        (r"Topic: a\tTopicId: id-of-a\tConfigs:\nTopic: ab\tTopicId: other\tConfigs:", ""),
        (r"Topic: a\tTopicId: other\tConfigs:\nTopic: x1\tTopicId: id-of-x1\tConfigs:", "Topic: a\tTopicId: other\n"),
        (r"Topic: a\tTopicId: id-of-a2\tConfigs:", "Topic: a\tTopicId: id-of-a2\n"),
        (r"Topic: x199\tTopicId: other\tConfigs:", "Topic: x199\tTopicId: other\n"),
        (r"Topic: a\tConfigs:", ""),  # a tool before 2.8
    ],
)
def test_a_script_changes_no_topic_that_was_recreated(answer, recreated):
    """The topics are so many that they take two patterns."""
    ids = {name: f"id-of-{name}" for name in ("a", *(f"x{number}" for number in range(guards.PER_PATTERN)))}
    step = Step("01-reassign", "reassign", "why.", tuple(Move(name, 0, (1,), (1, 2)) for name in sorted(ids)))
    answer += "".join(rf"\nTopic: {name}\tConfigs:" for name in ids if f"Topic: {name}\\t" not in answer)
    stubs = f"kafka-topics() {{ printf '{answer}\\n'; }}\nkafka-reassign-partitions() {{ false; }}\n"
    for _, text in scripts.script_files([step], FACTS, ids):
        ran = subprocess.run(["bash", "-x", "-c", stubs + text], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (1, recreated), ran
        assert ("kafka-reassign-partitions" in ran.stderr) is (not recreated)
    assert guards.same_topics(step.topics, {}) == []


def verified(before: str, after: str) -> str:
    """The body of a stub that verifies the file in undo/ and the file in steps/ with these answers."""
    return f"case $* in *--verify*undo/*) echo '{before}';; *--verify*) echo '{after}';; esac"


THROTTLED = "leader.replication.throttled.replicas=*"
RATE = "leader.replication.throttled.rate={}"
COMPLETE, RUNNING = "Reassignment of partition a-0 is completed.", "Reassignment of partition a-0 is still in progress."
OTHER = "There is no active reassignment of partition a-0, but replica set is 2 rather than 1."


@pytest.mark.parametrize(
    ("folder", "before", "after", "throttles", "status", "did"),
    [
        # the snapshot's state: it starts, and ends only when the partition is complete
        ("steps", COMPLETE, OTHER, "", 1, ["execute", "verify"]),
        # complete or running from an earlier try
        ("steps", OTHER, COMPLETE, "", 0, []),
        ("steps", OTHER, RUNNING, "", 1, ["verify"]),
        # moved by another since, or a tool that fails
        ("steps", OTHER, OTHER, "", 1, []),
        ("steps", "", "", "", 1, []),
        # another's throttle, which the tool would delete even if nothing is left to move
        ("steps", COMPLETE, OTHER, RATE.format(1000), 1, []),
        ("steps", COMPLETE, OTHER, RATE.format(500000000), 1, []),
        ("steps", COMPLETE, OTHER, f"{RATE.format(50000000)} {RATE.format(1000)}", 1, []),
        ("steps", OTHER, COMPLETE, RATE.format(1000), 0, []),
        ("steps", OTHER, COMPLETE, THROTTLED, 0, []),
        ("steps", OTHER, RUNNING, RATE.format(1000), 1, []),
        ("steps", COMPLETE, OTHER, f"DYNAMIC_DEFAULT_BROKER_CONFIG:{RATE.format(50000000)}", 1, []),
        # a throttle of a run that was killed is set and deleted, but not while another reassignment keeps the tool from it
        ("steps", COMPLETE, OTHER, RATE.format(50000000), 1, ["execute", "verify"]),
        ("steps", OTHER, COMPLETE, RATE.format(50000000), 1, ["verify"]),
        # the tool would delete a list that the topic had before
        ("steps", COMPLETE, OTHER, THROTTLED, 1, []),
        ("undo", OTHER, COMPLETE, THROTTLED, 1, []),
        ("undo", OTHER, COMPLETE, "", 1, ["execute", "verify"]),
        ("undo", COMPLETE, OTHER, "", 0, []),
        ("undo", OTHER, RUNNING, "", 1, ["cancel"]),
        ("undo", OTHER, OTHER, "", 1, []),
    ],
)
def test_a_batch_starts_once_and_only_from_the_state_that_was_planned(
    tmp_path, folder, before, after, throttles, status, did
):
    doc = document("topic replicas min\na 1 1", brokers="1 2 3")
    change = draft.draft(inputs(doc, {"a": (3, None)})).change
    [moves] = [step for step in change.steps if step.kind == "reassign"]
    config = THROTTLED if throttles is THROTTLED else ""
    stubs = f"""sleep() {{ :; }}
    kafka-topics() {{ {listed("a")} | sed 's/$/{config}/'; }}
    kafka-configs() {{ echo '{throttles if throttles is not THROTTLED else ""}'; }}
    kafka-reassign-partitions() {{
      case $* in *--preserve-throttles*) ;; *) echo "$*" >> said;; esac; {verified(before, after)}
    }}
    """
    (tmp_path / "said").write_text("")
    script = stubs + texts(change)[f"{folder}/{moves.id}.sh"]
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    asked = re.findall("--(execute|cancel|verify)", (tmp_path / "said").read_text())
    assert (ended.returncode, list(dict.fromkeys(asked))) == (status, did), ended
    assert "Argument list too long" not in ended.stderr


@pytest.mark.parametrize(
    ("folder", "release", "out_of_sync", "status"),
    [
        ("undo", (3, 6), True, 1),
        ("undo", (3, 6), False, 0),
        ("undo", (4, 3), True, 0),  # it waits until those that stay are in sync
        ("steps", (3, 6), True, 0),  # it adds replicas
    ],
)
def test_no_replica_is_taken_away_while_one_that_stays_is_out_of_sync(tmp_path, folder, release, out_of_sync, status):
    """Kafka 3.6.2 completes such a move at once. Then writes were rejected, with one of two replicas in sync."""
    step = Step("01-reassign", "reassign", "why.", moves=(Move("a", 0, (1, 2), (1, 2, 3)),))
    lagging = "Topic: a Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1" if out_of_sync else ""
    stubs = f"""sleep() {{ :; }}
    kafka-topics() {{ case $* in *--under-replicated*) echo '{lagging}';; *--unavailable*) ;; *) {listed("a")};; esac; }}
    kafka-configs() {{ :; }}
    kafka-reassign-partitions() {{
      case $* in *--execute*) echo moved > moved;; esac
      [[ -e moved ]] && moved='{COMPLETE}' || moved='{OTHER}'
      case $* in *--verify*{folder}/*) echo "$moved";; *--verify*) [[ -e moved ]] || echo '{COMPLETE}';; esac
    }}
    """
    facts = ClusterFacts(release, release, led=True, elr=False)
    script = stubs + dict(scripts.script_files([step], facts, {}))[f"{folder}/{step.id}.sh"]
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, (tmp_path / "moved").exists()) == (status, status == 0), ended
    assert (lagging in ended.stdout) is (status == 1) or not lagging


@pytest.mark.parametrize("name", ["t" * 110, "." * 110 + "t"])
def test_guards_of_many_long_names_fit_into_arguments(name):
    """Linux limits one to 128 KiB. A grep that can't start has found nothing, which must not count as an answer."""
    names = [f"{name}{number}" for number in range(1500)]
    settings = [Setting(one, "min.insync.replicas", "1", "2") for one in names]
    facts, ids = ClusterFacts((4, 3), (4, 3), led=True, elr=True), {one: "a" * 22 for one in names}
    checks = [
        *(guards.visible(names) + guards.same_topics(names, ids) + guards.in_sync(names, facts)),
        *(guards.enough_in_sync(settings) + guards.enforce_no_more(settings) + guards.nothing_eligible(names, facts)),
        *(guards.overrides(settings, facts) + guards.unchanged(settings, facts) + guards.no_throttled_replicas(names)),
        *(guards.are_set(settings, facts) + guards.not_set(settings, facts)),
    ]
    assert len(checks) > 50 and max(len(check) for check in checks) < 100_000


@pytest.mark.parametrize(("replicas", "enough"), [("1,2,3", True), ("10,2", False), ("1", False), ("1,2,3,4", True)])
def test_a_script_raises_no_minimum_to_the_replicas_of_a_partition_that_was_added(replicas, enough):
    [check] = guards.with_headroom([Setting("a.b", MIN_ISR, "1", "2")])
    shown = "Topic: a.b\tTopicId: x\tReplicationFactor: 2\tConfigs: min.insync.replicas=1\n"
    shown += f"\tTopic: a.b\tPartition: 3\tLeader: 1\tReplicas: {replicas}\tIsr: {replicas}\n\tTopic: axb\tReplicas: 1\tIsr: 1"
    done = subprocess.run(["bash", "-c", f"topics=$1; {check}", "_", shown], capture_output=True, text=True)
    assert (done.returncode == 0) is enough and (guards.NO_HEADROOM in done.stdout) is not enough
    # What the plan lowered before comes back.
    lowered = Step(
        "1", "lower-min-isr", "", settings=(Setting("t", MIN_ISR, "3", "2"), Setting("u", MIN_ISR, None, "1"))
    )
    raised = Step("2", "raise-min-isr", "", settings=(Setting("t", MIN_ISR, "2", "3"), Setting("u", MIN_ISR, "1", "2")))
    assert [s.topic for s in raised_further(raised, [lowered, raised])] == ["u"]


def test_a_grep_that_cannot_run_is_no_answer():
    for check in (
        guards.none_matches("x", "said"),
        guards.all_end("x", "y", "said"),
        of_brokers.none(),
        of_brokers.left(),
    ):
        for status in (2, 126):
            stub = f"grep() {{ cat > /dev/null; return {status}; }}\n"
            assert subprocess.run(["bash", "-c", stub + check]).returncode == 1


def test_a_step_that_would_stop_writes_is_found():
    doc = document("topic replicas min\nt 1 2", brokers="1 2 3")
    made = assemble(doc, Wanted((Move("t", 0, (1,), (1, 2, 3)),)), FACTS, Limits())
    assert states.worded(made.harms) == ["Step 01-reassign would leave t-0 offline or under its min.insync.replicas"]


def test_replicas_that_stay_are_in_sync_only_if_they_were():
    doc = document(
        "topic leader replicas isr min\nt 2 1,2,3 2 1\nt 1 1,2,4 1,2,4 1\nt 1 1,2,3 1,2,3 1", brokers="1:a 2:b 3:c 4:c"
    )
    [topic] = doc["topics"]
    target = finding("t", aims(topic, 3, 2, {1, 2, 3, 4}))
    reorder = Move("t", 0, (1, 2, 3), (2, 1, 3))
    assert of_target(target, topic, [reorder], {1, 2, 3, 4}).held == OUT_OF_SYNC
    made = assemble(doc, Wanted((reorder,)), FACTS, STANDARD)
    assert made.planned["topics"][0]["partitions"][0]["isr"] == [2]
    raised = Wanted((reorder,), {"t": TopicSettings(None, Setting("t", MIN_ISR, "1", "2"))})
    assert {harm.topic for harm in assemble(doc, raised, FACTS, STANDARD).harms} == {"t"}


@pytest.mark.parametrize("why", ["unread", "refused"])
def test_a_topic_whose_minimum_cannot_be_lowered_keeps_its_replicas(why, monkeypatch):
    doc = document("topic replicas min\nt 1 2\nu 1 -", brokers="1 2 3")
    facts, aim = FACTS, {}
    if why == "unread":
        doc["unreadable"] = [{"path": "/topics/t/configs", "reason": "TOPIC_AUTHORIZATION_FAILED"}]
        aim = {"min_insync_replicas_now": None}
    else:
        monkeypatch.setitem(REFUSED, "other", {"topics": {"min.insync.replicas": "It is fixed here"}})
        facts = ClusterFacts((4, 3), (4, 3), led=True, elr=False, provider="other")
    asked = inputs(doc, {"t": (3, 2), "u": (3, None)}, facts)
    asked.targeted[0]["evidence"]["target"] |= aim
    made = draft.draft(asked)
    assert {topic for step in made.change.steps for topic in step.topics} == {"u"}
    [(topic, said)] = made.left_out
    assert topic == "t" and ("unknown" if why == "unread" else "It is fixed here") in said
    assert made.change.harms == ()


def test_a_topic_that_a_step_would_harm_is_left_out():
    """Brokers differ in min.insync.replicas, which counts for the partitions that they lead."""
    doc = document(
        "topic replicas min\nt 1,2 -\nt 2,1 -\nu 1,2 2",
        brokers="1 2 3 4",
        each_broker={2: {"configs": {MIN_ISR: "3"}}},
    )
    made = draft.draft(inputs(doc, {"t": (3, 2), "u": (3, 2)}))
    assert (made.left_out, made.change.harms) == ((("t", regress.HARMFUL.format(1)),), ())
    assert {topic for step in made.change.steps for topic in step.topics} == {"u"}


def test_a_topic_that_would_inherit_another_minimum_is_left_out():
    """Here each broker has its own min.insync.replicas, and `t` and `u` would get a leader with another one."""
    doc = document(
        "topic replicas min\nt 1,2 -\nu 4,2 -\nv 1,2 2",
        brokers="1 2 3! 4 5",
        broker_configs={MIN_ISR: "2"},
        each_broker={5: {"configs": {MIN_ISR: "1"}}},
    )
    aim = {"min_insync_replicas_now": 2, "highest_min_insync_replicas": 2}
    asked = inputs(doc, {"t": (3, None), "u": (3, None), "v": (3, 2)}, **aim)
    made = draft.draft(replace(asked, avoid=frozenset({4, 1})))
    assert dict(made.left_out) == {"t": regress.DIFFERS, "u": regress.DIFFERS}
    assert {topic for step in made.change.steps for topic in step.topics} == {"v"}
    assert made.change.harms == ()
    same = inputs(document("topic replicas\nt 1,2", brokers="1 2 5"), {"t": (3, None)}, **aim)
    assert draft.draft(same).left_out == ()


def test_the_leaders_value_counts_where_another_broker_answered_for_the_topic():
    doc = document(
        "topic replicas\nt 1,2\nt 2,1",
        brokers="1 2 3",
        configs={"t": {MIN_ISR: "1"}},
        sources={"t": {MIN_ISR: "broker"}},
        each_broker={2: {"configs": {MIN_ISR: "3"}}},
    )
    moves = (Move("t", 0, (1, 2), (1, 2, 3)), Move("t", 1, (2, 1), (2, 1, 3)))
    assert {harm.partition for harm in assemble(doc, Wanted(moves), FACTS, STANDARD).harms} == {1}


@pytest.mark.parametrize("unread, left_out", [(False, ()), (True, (("t", regress.UNKNOWN_OFFLINE),))])
def test_nothing_is_set_while_the_minimum_of_an_offline_partition_is_unknown(unread, left_out):
    """With another value, findings would name that partition, and refute the plan."""
    doc = document(
        "topic leader replicas isr\nt 1 1 1\nt - 3 3",
        brokers="1 2 3!",
        broker_configs={MIN_ISR: "2"},
        unreadable={"/brokers/2/configs": "it is down"} if unread else None,
    )
    aim = {"min_insync_replicas_now": 2, "highest_min_insync_replicas": 2, "min_insync_replicas_enforced": 1}
    made = draft.draft(inputs(doc, {"t": (1, 1)}, **aim))
    assert made.left_out == left_out and bool(made.change.steps) is not bool(left_out)


@pytest.mark.parametrize("path", ["/topics/t/configs", "/topics/0/configs/min.insync.replicas", "/brokers/0/configs"])
def test_an_unknown_minimum_is_harm_where_replicas_are_added(path):
    doc = document("topic replicas\nt 1", brokers="1 2 3", unreadable={path: "CLUSTER_AUTHORIZATION_FAILED"})
    made = assemble(doc, Wanted((Move("t", 0, (1,), (1, 2)),)), FACTS, STANDARD)
    assert {(harm.topic, harm.partition) for harm in made.harms} == {("t", 0)}
    assert not assemble(doc, Wanted((Move("t", 0, (1,), (1,)),)), FACTS, STANDARD).harms
    rows = {"placements": [], "settings": [{"topic": "t", "name": MIN_ISR, "value": "2"}]}
    undone = way_back.undo(doc, rows, FACTS, STANDARD)
    assert bool(undone.left_out) is path.startswith("/topics") is not bool(undone.change.steps)


def test_brokers_that_are_not_known_to_be_up_are_waited_for():
    for state in ({"live": None}, {"live": True, "fenced": True}, {"live": False}, {"live": True}):
        doc = document("topic leader replicas isr\nt 1 1,2 1,2", brokers="1 2 3", each_broker={2: state})
        kinds = [step.kind for step in assemble(doc, Wanted((Move("t", 0, (1, 2), (1, 3)),)), FACTS, STANDARD).steps]
        assert kinds == (["reassign"] if state == {"live": True} else ["wait", "reassign"])
    doc = document("topic replicas\nt 1,2", brokers="1 2 3", unreadable={"/brokers/1/live": "timed out"})
    assert assemble(doc, Wanted((Move("t", 0, (1, 2), (1, 3)),)), FACTS, STANDARD).steps[0].brokers == (2,)


def test_topics_that_cannot_survive_a_rack_still_move_and_say_so():
    doc = document("topic replicas min\nt 1 2", brokers="1:a 2:a 3:a")
    asked = inputs(doc, {"t": (3, 2)})
    asked = replace(asked, required={"t": {"survive": ["rack"]}})
    made = draft.draft(asked)
    assert made.left_out == () and "rack" in made.notes["t"]
    assert [note["topic"] for note in notes(made)] == ["t"]
    lost = finding("t", None, control="rack-loss")
    assert made.why(lost, None) == made.notes["t"]
    # Other reasons don't relax the target.
    fewer = draft.draft(replace(asked, avoid=frozenset({2, 3})))
    assert fewer.change.steps == () and not fewer.notes and dict(fewer.left_out)["t"].startswith("only the avoided")


@pytest.mark.parametrize(
    "brokers, replicas, most, said",
    [
        (
            "1:a 2:a 3:b 4:b 5:c 6:c",
            "1,2,3,4,5",
            None,
            "with 5 replicas in 3 racks that takes min.insync.replicas=3: raise it",
        ),
        ("1:a 2:a 3:b 4:b 5:c 6:c", "1,3,5,6", None, "give each partition 5 replicas and min.insync.replicas=3"),
        ("1:a 2:a 3:b 4:b 5:c 6:c", "1,3,5,6", 4, "add a rack"),  # the tier allows no more
        ("1:a 2:a 3:b 4:c", "1,2,3,4", None, "add a rack"),  # no fifth broker
        ("1:a 2:a 3:b 4:b 5:c!", "1,2,3", None, "add a rack"),  # the only broker of the third rack is down
        ("1:a 2:a 3:a 4:b 5:b 6:b", "1,2,4,5", None, "add a rack"),
    ],
)
def test_where_no_placement_survives_a_rack_the_minimum_that_would_is_named(brokers, replicas, most, said):
    doc = document(f"topic replicas min\nt {replicas} 2", brokers=brokers)
    lost = finding("t", None, control="rack-loss")
    asked = inputs(doc, {"t": (3, 2)}, more=[lost])
    asked = replace(asked, required={"t": {"survive": ["rack"], "replication_factor_at_most": most}})
    made = draft.draft(asked)
    assert said in dict(made.left_out)["t"], made.left_out
    assert made.why(lost, None) == dict(made.left_out)["t"]


def test_a_minimum_that_a_person_must_decide_stays():
    """Partitions with three replicas enforce 3. With 2, as the target has it, they would enforce fewer."""
    doc = document("topic replicas min\nt 1,2 3\nt 3,2,1 3\nu 1 1", brokers="1 2 3")
    made = draft.draft(inputs(doc, {"t": (3, 2), "u": (2, None)}))
    assert {topic for step in made.change.steps for topic in step.topics} == {"u"}
    assert dict(made.left_out) == {"t": UNEVEN}


def test_a_topic_that_moves_only_without_another_one_gets_its_settings():
    doc = document(
        """
        topic  leader  replicas  isr  min  bytes
        big    1       1,2       1    3    90
        small  2       2         2    2    20
        """,
        brokers="1 2 3",
    )
    unclean = finding("big", None, control="unclean-leader-election", own=True)
    asked = inputs(doc, {"big": (3, 3), "small": (2, 2)}, more=[unclean])
    room = [replace(b, usable_bytes=100, total_bytes=100) for b in asked.brokers]
    asked = replace(asked, brokers=room, margin_disk=0.0, avoid=frozenset({1}))
    with_big = solve(
        Problem(
            room,
            [Partition("big", 0, (1, 2), bytes=90), Partition("small", 0, (2,), bytes=20)],
            {"big": Target(3), "small": Target(2)},
            avoid=asked.avoid,
            margin_disk=0.0,
        )
    )
    assert [left.topic for left in with_big.left_out] == ["small"]
    made = draft.draft(asked)
    assert (made.left_out, made.notes) == ((), {"big": OUT_OF_SYNC})
    assert [(step.kind, *step.topics) for step in made.change.steps[:2]] == [
        ("lower-min-isr", "small"),
        ("reassign", "small"),
    ]
    assert [step.topics for step in made.change.steps if step.kind == "set-config"] == [["big"]]
    assert made.change.harms == ()


@pytest.mark.parametrize(
    "configs, sources, known",
    [
        ({"unclean.leader.election.enable": "true"}, {"unclean.leader.election.enable": "cluster-default"}, True),
        ({"unclean.leader.election.enable": "true"}, {"unclean.leader.election.enable": "broker"}, True),
        ({"unclean.leader.election.enable": "true"}, {"unclean.leader.election.enable": "broker-dynamic"}, False),
        ({}, {}, True),
        (None, {}, False),
    ],
)
def test_a_cluster_wide_value_that_could_not_be_read_is_not_changed(configs, sources, known):
    doc = document("topic replicas\nt 1", brokers="1")
    doc["brokers"][0] |= {"configs": configs, "config_sources": sources}
    unclean = finding("t", None, control="unclean-leader-election", overriding_brokers=[])
    steps = draft.draft(inputs(doc, {}, more=[unclean])).change.steps
    assert [step.kind for step in steps] == (["set-config"] if known else [])
    rows = {"placements": [], "settings": [{"topic": None, "name": "unclean.leader.election.enable", "value": "x"}]}
    undone = way_back.undo(doc, rows, FACTS, STANDARD)
    assert bool(undone.change.steps) is known is not bool(undone.left_out)


@pytest.mark.parametrize("partitions, digits", [(98, 2), (99, 3), (120, 3)])
def test_ids_of_steps_sort_in_their_order(partitions, digits):
    lines = [f"t {n % 2 + 1},{(n + 1) % 2 + 1}" for n in range(partitions)]
    doc = document("\n".join(["topic replicas", *lines]), brokers="1 2 3")
    moves = [
        Move("t", n, tuple(p["replicas"]), (3, p["replicas"][0])) for n, p in enumerate(doc["topics"][0]["partitions"])
    ]
    made = assemble(doc, Wanted(tuple(moves)), FACTS, Limits(partitions=1))
    ids = [step.id for step in made.steps]
    assert ids == sorted(ids) and len(ids) == partitions + 1 and {len(id.split("-")[0]) for id in ids} == {digits}
    assert [step.after for step in made.steps] == [(), *((id,) for id in ids[:-1])]
    leaders = {p["leader"] for p in made.planned["topics"][0]["partitions"]}
    assert leaders == {3}


@pytest.mark.parametrize("release", [(4, 3), (3, 6)])
def test_why_a_minimum_is_lowered_fits_the_release(release):
    doc = document("topic replicas min\nt 1 2", brokers="1 2 3")
    facts = ClusterFacts(release, release, led=True, elr=False)
    made = draft.draft(inputs(doc, {"t": (3, 2)}, facts)).change
    lowered = made.steps[0]
    assert lowered.kind == "lower-min-isr" and ("reject acks=all writes" in lowered.why) is (release < (3, 7))
    assert ("reject acks=all writes" in texts(made, facts)[f"undo/{lowered.id}.sh"]) is (release < (3, 7))


@pytest.mark.parametrize(
    "log_dirs, receiver, size",
    [
        (((500, 1000), (500, 1000)), True, 250),
        (((900, 1000), (90, 1000)), False, 10),  # less than a tenth free, as in plans.has_room
        (((900, 1000), (300, 1000)), True, 90),
        (((900, 1000), (300, 1000)), False, 110),  # it may land on the fuller disk
        (((900, 1000), (None, None)), True, 110),
        (((500, None),), True, 390),
        (((500, None),), False, 410),  # a fifth of what is usable stays free at least
    ],
)
def test_a_new_replica_fits_in_each_log_dir(log_dirs, receiver, size):
    row = {"broker": 1, "rack": None, "live": True, "fenced": False, "offline_log_dirs": 0, "configs": None}
    dirs = [{"error": None, "usable_bytes": usable, "total_bytes": total} for usable, total in log_dirs]
    brokers = of_rows([row | {"log_dirs": dirs}, row | {"broker": 2, "log_dirs": None}])
    found = solve(Problem(brokers, [Partition("t", 0, (2,), bytes=size)], {"t": Target(2)}))
    assert bool(found.replicas) is receiver


CATEGORIES = {"o": "offline", "u": "under-min-isr", "a": "at-min-isr", "r": "under-replicated"}


def health(findings: str) -> dict[str, dict]:
    """Findings of partition-health, by id: `u critical 0,1` is of partitions 0 and 1, which are under their min ISR."""
    rows = [row.split() for row in findings.split(";") if row.strip()]
    return {
        key: {
            **{"id": key, "control": "partition-health", "resource_type": "topic", "resource": "t"},
            **{"outcome": "UNKNOWN" if key == "?" else "FAIL", "severity": severity, "category": CATEGORIES.get(key)},
            "partitions": [int(number) for number in numbers[0].split(",")] if numbers else None,
        }
        for key, severity, *numbers in rows
    }


def _why(finding, later):
    return f"{finding['id']} is {later['outcome']}" if later else "unknown"


def judged(**findings):
    return {
        id: {
            "id": id,
            "control": "c",
            "category": None,
            "resource_type": "topic",
            "resource": "t",
            "outcome": outcome,
            "severity": severity,
            "partitions": list(partitions),
        }
        for id, (outcome, severity, *partitions) in findings.items()
    }


def test_a_new_or_worse_finding_refutes_the_plan():
    now = judged(a=("FAIL", "warning"), b=("FAIL", "critical"), u=("UNKNOWN", None))
    gone = proof.compare(now, judged(b=("FAIL", "critical")), {"a"}, ["a", "b"], _why)
    assert gone.offered and gone.mends == ("a",) and gone.remains == (("b", "b is FAIL"),)
    for after in (
        judged(n=("FAIL", "info")),
        judged(n=("UNKNOWN", None)),
        judged(a=("FAIL", "critical")),
        judged(u=("FAIL", "warning")),
    ):
        refuted = proof.compare(now, after, {*now} - {*after}, ["a", "b"], _why)
        assert not refuted.offered and [f["id"] for f in refuted.new] == list(after)
    assert not proof.compare(now, {}, now, ["a"], _why, harms=["Step 1"]).offered
    assert not proof.compare(now, now, (), ["a"], _why).offered
    assert proof.compare(now, now, (), [], _why, allowed=()).offered
    came_back = judged(n=("FAIL", "critical"))
    assert proof.compare({}, came_back, (), [], _why, allowed={"n"}).offered


@pytest.mark.parametrize(
    "now, then, offered",
    [
        ("u critical 0", "a warning 0", True),  # under its min ISR before, at it now
        ("u critical 0", "a info 0; r info 0", True),
        ("o critical 0", "u critical 0", False),  # as grave
        ("u critical 0", "a warning 0,2", False),  # partition 2 was healthy
        ("u critical 0", "a warning", False),  # about no partition
        ("u critical 0", "? - 0", False),
        ("u critical 0", "u critical 0; r info 0", False),  # beside the graver one
        ("u critical 0; a info 1", "a warning 0", True),
        ("u critical 0; a info 1,2", "a warning 0,2", False),
        ("u critical 0; a info 1", "a warning 0,1", False),
        # Partition 1 isn't under-replicated: it was at its min ISR with all replicas in sync, and is.
        ("u critical 0; r info 0; a info 1", "a warning 0,1; r info 0", True),
        ("u critical 0; r info 0; a info 1", "a warning 0,1; r info 0,1", False),
        ("u critical 0; r info 0; a info 1", "a warning 0,1,2; r info 0", False),
        ("r info 0; a info 1", "a warning 0,1; r info 0", False),
        ("u critical 0,1; a warning 2", "a warning 0,1,2", True),
        ("u critical 0,1; a warning 2", "a warning 0,1,2,3", False),
        ("a critical 0", "a warning 0,1", False),  # less grave, and about a healthy one
        # Critical because of partition 0. Partition 1 was at its min ISR with all replicas in sync.
        ("a critical 0,1", "r warning 1", False),
        ("? - 0", "r info 0", False),
    ],
)
def test_a_partition_that_is_better_off_may_have_another_finding(now, then, offered):
    before, after = health(now) | judged(x=("FAIL", "critical")), health(then)
    made = proof.compare(before, after, {*before} - {*after}, ["x"], _why)
    assert made.mends == ("x",) and made.offered is offered
    if offered:  # so is its undo
        assert proof.compare(after, before, (), [], _why, allowed=made.improves).offered
    for key, other in (("control", "c"), ("resource", "u"), ("resource_type", "cluster"), ("category", "new")):
        elsewhere = {f"{id}2": finding | {key: other} for id, finding in after.items()}
        assert not proof.compare(before, elsewhere, {*before}, ["x"], _why).offered


def test_a_finding_about_more_partitions_is_worse_if_both_lists_are_whole():
    before = judged(f=("FAIL", "warning", 0), x=("FAIL", "critical"))
    for more, category, offered in (
        ([0], None, True),
        ([0, 1], None, False),
        ([1], None, False),
        ([0, 1], "uneven", True),  # the other partitions of this category weren't listed
    ):
        after = {"f": before["f"] | {"partitions": more, "category": category}}
        made = proof.compare(before, after, {"x"}, ["x"], _why)
        assert made.offered is offered
    unlisted = {"f": before["f"] | {"partitions": None}, "x": before["x"]}
    assert proof.compare(unlisted, {"f": before["f"]}, {"x"}, ["x"], _why).offered
    less = {"f": before["f"] | {"severity": "info", "partitions": [0, 1]}}
    assert proof.compare(before, less, {"x"}, ["x"], _why).offered
    # What the plan took from a finding may come back by its undo.
    wide = {"f": before["f"] | {"partitions": [0, 1]}, "x": before["x"]}
    made = proof.compare(wide, {"f": before["f"]}, {"x"}, ["x"], _why)
    assert made.mends == ("x",) and set(made.improves) == {"f", "x"}
    assert proof.compare({"f": before["f"]}, wide, (), [], _why, allowed=made.improves).offered
    assert not proof.compare({"f": before["f"]}, wide, (), [], _why, allowed=made.mends).offered


@pytest.mark.parametrize(
    "now, then, control, offered",
    [
        (
            "u critical 1",
            "a warning 1",
            "broker-loss",
            True,
        ),  # it rejected writes before: no loss could make that worse
        ("o critical 1", "", "rack-loss", True),
        ("u critical 1", "u critical 1", "broker-loss", False),
        ("a warning 1", "", "broker-loss", False),
        ("u critical 1", "a warning 1", "write-headroom", False),
    ],
)
def test_a_loss_may_break_a_partition_that_was_broken_before_it(now, then, control, offered):
    def loss(*partitions):
        return {"l": {**judged(l=("FAIL", "warning", *partitions))["l"], "control": control}}

    before = health(now) | loss(0) | judged(x=("FAIL", "critical"))
    after = health(then) | loss(0, 1)
    made = proof.compare(before, after, {*before} - {*after}, ["x"], _why)
    assert made.mends == ("x",) and made.offered is offered


def test_only_a_verdict_shows_that_a_finding_is_fixed():
    now = judged(a=("FAIL", "warning"), b=("FAIL", "critical"), u=("UNKNOWN", None), d=("FAIL", "info"))
    lost = proof.compare(now, {}, {"b"}, ["a", "b"], _why)
    assert lost.mends == ("b",) and [id for id, _ in lost.remains] == ["a"]
    assert not proof.compare(now, {}, (), ["a"], _why).offered
    disputed = proof.compare(now, {}, now, ["u", "a"], _why, disputed={"u"})
    assert disputed.mends == ("a",) and disputed.remains == (("u", proof.DISPUTED),)
    assert not proof.compare(now, {}, now, ["u"], _why, disputed={"u"}).offered


def test_what_a_plan_improves_beside_its_targets_may_come_back_by_its_undo():
    now = judged(a=("FAIL", "warning"), b=("FAIL", "critical"), c=("FAIL", "critical"), e=("FAIL", "info"))
    then = judged(c=("FAIL", "warning"), e=("FAIL", "info"))
    made = proof.compare(now, then, {"a", "b"}, ["a"], _why)
    assert made.mends == ("a",) and set(made.improves) == {"a", "b", "c"}
    assert proof.compare(then, now, (), [], _why, allowed=made.improves).offered
    assert not proof.compare(then, now | judged(n=("FAIL", "info")), (), [], _why, allowed=made.improves).offered
    assert not proof.compare(then, now, (), [], _why, allowed=made.mends).offered


def test_no_value_of_a_cluster_reaches_a_script_unless_it_is_one_of_kafkas():
    doc = document("topic replicas min\nt 1 2\nu 1 2", brokers="1 2 3")
    doc["topics"][0]["configs"][MIN_ISR] = "2;touch x"
    made = draft.draft(inputs(doc | {"topics": doc["topics"][1:]}, {"u": (3, 2)}))
    assert made.change.steps
    asked = inputs(doc, {"u": (3, 2)}, more=[finding("t", None, own=True, control="unclean-leader-election")])
    made = draft.draft(asked)
    assert dict(made.left_out)["t"].startswith("its min.insync.replicas is no value of Kafka's")
    assert not [text for text in texts(made.change).values() if "touch" in text]
    rows = {"placements": [], "settings": [{"topic": "u", "name": MIN_ISR, "value": "1 && touch x"}]}
    with pytest.raises(ValueError):
        way_back.undo(doc, rows, FACTS, STANDARD)
    rows["settings"][0] |= {"name": "x;touch", "value": "1"}
    with pytest.raises(ValueError):
        way_back.undo(doc, rows, FACTS, STANDARD)
