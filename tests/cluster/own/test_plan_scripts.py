"""A plan's scripts with Kafka's own tools, on a cluster that others change, too."""

from __future__ import annotations

import re
from pathlib import Path

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import ClusterSpec, LocalCluster
from durability.remedies import throttles
from durability.remedies.change import scripts, way_back
from durability.remedies.change.assemble import assemble
from durability.remedies.change.describe import before
from durability.remedies.change.model import Change, Limits, Move, Setting, TopicSettings, Wanted, topic_ids
from durability.remedies.cluster import ClusterFacts
from tests.support.pasting import Shell

MIN_ISR = "min.insync.replicas"
FACTS = ClusterFacts((4, 3), (4, 3), kraft=True, led=True, elr=True)


def write(change: Change, ids: dict[str, str], out: Path) -> None:
    for path, text in (*scripts.data_files(change.steps), *scripts.script_files(change.steps, FACTS, ids)):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text)


def test_a_plan_is_carried_out_and_taken_back_beside_what_others_do(tmp_path):
    with LocalCluster(ClusterSpec({1: "a", 2: "b", 3: "c"}, {1: "a"})) as kafka:

        def document() -> dict:
            return collect("c", {"bootstrap.servers": kafka.bootstrap}).document

        # Brokers enforce one replica of `short`, which is less than it asks for.
        seed.create_topics(
            kafka, [seed.Topic("short", [[1]], {MIN_ISR: "2"}), seed.Topic("a.b", [[2], [3]], {MIN_ISR: "1"})]
        )
        found = document()
        moves = (
            Move("short", 0, (1,), (1, 2, 3)),
            Move("a.b", 0, (2,), (2, 3, 1)),
            Move("a.b", 1, (3,), (3, 1, 2)),
        )
        wanted = {
            "short": TopicSettings(Setting("short", MIN_ISR, "2", "1"), Setting("short", MIN_ISR, "1", "2")),
            "a.b": TopicSettings(after=Setting("a.b", MIN_ISR, "1", "2")),
        }
        change = assemble(found, Wanted(moves, wanted), FACTS, Limits())
        assert [step.kind for step in change.steps] == [
            "lower-min-isr",
            "reassign",
            "raise-min-isr",
        ] and not change.harms
        lower, reassign, raised = (f"{step.id}.sh" for step in change.steps)
        write(change, topic_ids(found), tmp_path / "plan")
        shell = Shell(kafka, tmp_path, tmp_path / "plan")

        def runs(script: str) -> tuple[bool, str]:
            done = shell.paste((shell.out / script).read_text())
            return done.returncode == 0, done.stdout + done.stderr

        def configs(*words: str) -> str:
            return kafka.cli("ConfigCommand", *words)

        def alter(kind: str, name: str, *words: str) -> None:
            configs("--alter", "--entity-type", kind, "--entity-name", name, *words)

        def state() -> dict[str, tuple[str | None, list[list[int]]]]:
            return {
                topic["name"]: (topic["configs"].get(MIN_ISR), [p["replicas"] for p in topic["partitions"]])
                for topic in document()["topics"]
            }

        was = state()
        alter("topics", "short", "--add-config", f"{MIN_ISR}=3")
        done, said = runs(f"steps/{lower}")
        assert not done and "short min.insync.replicas=3" in said and "another person set it" in said
        alter("topics", "short", "--add-config", f"{MIN_ISR}=2")
        assert runs(f"steps/{lower}")[0]

        # Throttles of others stay, and end the step. Those of a run that was killed don't.
        rate = "follower.replication.throttled.rate"
        alter("brokers", "3", "--add-config", f"{rate}=7777777")
        done, said = runs(f"steps/{reassign}")
        assert not done and throttles.FOREIGN in said
        alter("brokers", "3", "--add-config", f"{rate}={throttles.RATE}")
        alter("topics", "short", "--add-config", "follower.replication.throttled.replicas=[0:2,0:3]")
        done, said = runs(f"steps/{reassign}")
        assert done, said
        everything = configs("--describe", "--entity-type", "brokers") + configs(
            "--describe", "--entity-type", "topics"
        )
        assert "throttled" not in everything
        alter("brokers", "3", "--add-config", f"{rate}=7777777")
        done, said = runs(f"steps/{reassign}")
        assert done and f"{rate}=7777777" in configs("--describe", "--entity-type", "brokers"), said
        alter("brokers", "3", "--delete-config", rate)

        def taken_back() -> str:
            """Makes the plan that takes this one back, and carries it out. Returns what kafka-topics said after each step."""
            seen = ""
            doc = document()
            back = way_back.undo(doc, before(change), FACTS, Limits())
            assert not back.left_out and not back.change.harms
            write(back.change, topic_ids(doc), tmp_path / "back")
            shell.out = tmp_path / "back"
            for step in back.change.steps:
                done, said = runs(f"steps/{step.id}.sh")
                assert done, (step, said)
                seen += kafka.cli("TopicCommand", "--describe")
            assert state() == was
            return seen

        # Half of it is taken back: a minimum above the number of replicas is restored.
        taken_back()
        shell.out = tmp_path / "plan"
        for script in (lower, reassign, raised):
            done, said = runs(f"steps/{script}")
            assert done, said
        assert [least for least, _ in state().values()] == ["2", "2"]
        # Kafka leaves replicas that are removed in the ELR, where the minimum is above their number.
        assert re.search(r"Replicas: 2\tIsr: 2\tElr: [13]", taken_back())
