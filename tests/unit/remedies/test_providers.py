"""Where a provider refuses Kafka's tools, no finding offers them, and what works there is said."""

from __future__ import annotations

import re

import pytest

from durability.findings import words
from durability.remedies import elections, providers, replicas, safety, settings, stuck
from durability.remedies.cluster import KEY, ClusterFacts, Fragile, Gone
from durability.remedies.commands import Elect, Reassign, Unregister, cluster_setting, topic_setting
from durability.remedies.steps import Step, render
from tests.unit.remedies.test_safety import FACTS, TARGET

REFUSED = ("kafka-reassign-partitions", "kafka-cluster", "kafka-leader-election", "--cancel", "brokers+gone", "plans/")
GONE = Gone("plans/c/brokers+gone.sh", (3,), (("t", 0, [1, 2, 4]),), 0)
MANAGED = ["aiven", "msk-express", "msk-serverless", "confluent"]


def finding(provider, facts=FACTS, **more):
    target = TARGET | {
        "reassign": True,
        "replication_factor_now": 1,
        "its_replication_factor": 1,
        "too_few_brokers": False,
    }
    target |= {"racks": 2, "racks_there": 3, "too_few_racks": False, "default_min_insync_replicas": None}
    target |= {"min_insync_replicas_source": "topic"}
    base = {"control": "replication-factor", "outcome": "FAIL", "category": None, "resource_type": "topic", "tier": "t"}
    return base | {
        **{"resource": "t", "cluster": "c", "provider": provider, "cause": None, "partitions": [0], "observed": {}},
        **{"required": {}, "evidence": {"target": target, "left": None}, KEY: facts, **more},
    }


@pytest.mark.parametrize("provider", MANAGED)
def test_more_replicas_are_not_added_by_a_plan(provider):
    text = words.remediation(finding(provider))
    assert not re.search(r"kafka-\w+|--\w|\$BOOTSTRAP", text), "advice names no command of Kafka's"
    assert not any(name in text for name in REFUSED)
    assert "kafka-reassign-partitions" in words.remediation(finding("self"))
    assert "kafka-reassign-partitions" in words.remediation(finding("msk"))
    assert ("avn service topic-update" in text) is (provider == "aiven")


@pytest.mark.parametrize("provider", MANAGED)
def test_no_refused_command_and_no_sentence_that_advises_one(provider):
    facts = ClusterFacts(gone=GONE, provider=provider, fragile=Fragile())
    one = finding(provider, facts)
    observed = {"stuck": ["t-0"], "throttled_brokers": [1], "throttled_topics": []}
    each = [
        replicas.bring_back("broker:3 down", facts),
        elections.elect("t", [0], facts),
        stuck.remedy({**one, "observed": observed, "evidence": {"cancel_harms": []}}, facts),
        [Step(Reassign("t", "plans/c/t.json", 1))],
        [Step(Unregister(3))],
        [Step(Elect("t", 0))],
    ]
    for remedy in each:
        text = render(safety.checked(remedy, one | {"observed": {"isr": 2}}), facts)
        assert text and not any(name in text for name in REFUSED), text


@pytest.mark.parametrize(("provider", "asks"), [("confluent", True), ("aiven", True), ("msk", False), ("self", False)])
def test_who_moves_no_replicas_asks_the_provider_why_they_lag(provider, asks):
    facts = ClusterFacts(provider=provider)
    text = render(replicas.bring_back("broker:3 lagging", facts), facts)
    assert ("Ask the cluster's provider why replicas lag (broker:3 lagging)" in text) is asks
    assert ("a leftover throttle" in text) is not asks


@pytest.mark.parametrize("provider", ["aiven", "msk", "msk-express", "confluent"])
def test_nobody_edits_files_of_a_providers_brokers(provider):
    facts = ClusterFacts(provider=provider, fragile=Fragile())
    weak = {"problems": ["default.replication.factor", "auto.create.topics.enable"]}
    evidence = {"elr_at_risk": False, "min_insync_replicas": [2]}
    one = finding(provider, facts, observed=weak, required={"default_replication_factor": 3}, evidence=evidence)
    text = render(safety.checked(settings.defaults(one), one), facts)
    assert "server.properties" not in text
    assert text.startswith("Set default.replication.factor=3. Set auto.create.topics.enable=false there too, unless")
    own = ClusterFacts(provider="self", fragile=Fragile())
    mine = one | {KEY: own, "provider": "self"}
    assert "server.properties" in render(safety.checked(settings.defaults(mine), mine), own)
    own_tools = safety.reason(cluster_setting("min.insync.replicas", 2), finding(provider, FACTS))
    assert own_tools is None or own_tools.startswith("Wanted: min.insync.replicas=2. ")


@pytest.mark.parametrize(
    ("causes", "todo"),
    [
        ("broker:5 down", "bring back broker 5"),
        (
            "rack:az1 down, broker:7 log dir offline",
            "bring back the brokers of rack az1 and replace the failed disks of broker 7",
        ),
        ("broker:7 log dir offline, broker:8 log dir offline", "replace the failed disks of brokers 7, 8"),
    ],
)
@pytest.mark.parametrize("provider", [*MANAGED, "msk"])
def test_a_providers_customer_starts_no_broker(provider, causes, todo):
    facts = ClusterFacts(provider=provider, fragile=Fragile())
    text = render(safety.checked(replicas.bring_back(causes, facts), finding(provider, facts)), facts)
    assert text.startswith(f"# Let the cluster's provider {todo}. {replicas.THEN_NONE}\nkafka-topics")


def test_a_provider_saves_the_only_copy_on_a_failed_disk():
    only = Fragile(by_broker={7: Fragile(offline=1, first_offline="orders-0")})
    facts = ClusterFacts(provider="msk", fragile=only)
    for causes in ("broker:7 log dir offline", "broker:5 down, broker:7 log dir offline"):
        text = render(safety.checked(replicas.bring_back(causes, facts), finding("msk", facts)), facts)
        assert "The cluster's provider must not replace the disk of broker 7 with an empty one" in text, text
        assert "replace the failed disk" not in text and ("bring back broker 5" in text) is ("5" in causes)


@pytest.mark.parametrize(("provider", "lets"), [("msk", True), ("aiven", True), ("self", False), (None, False)])
def test_a_providers_customer_starts_no_broker_to_get_a_leader(provider, lets):
    steps = [
        Step(about=("Start these brokers, then audit again",)),
        Step(topic_setting("t", "a", 1), unless=safety.NO_LEADER),
    ]
    text = render(safety.checked(steps, finding(provider, FACTS)), FACTS)
    assert ("Let the cluster's provider start these brokers" in text) is lets
    assert ("The cluster's provider runs the brokers" in text) is lets and ("repair its disk" in text) is not lets


def test_what_a_provider_fixes_is_not_changed():
    set_ = topic_setting("t", "min.insync.replicas", 1)
    assert "AWS fixes min.insync.replicas=2" in safety.reason(set_, finding("msk-express"))
    assert "avn service update" in safety.reason(cluster_setting("a", 1), finding("aiven"))
    assert safety.reason(cluster_setting("a", 1), finding("msk")) is None


def test_redpandas_operators_start_their_nodes_and_set_replicas_with_its_own_tool():
    facts = ClusterFacts(provider="redpanda", fragile=Fragile())
    text = words.remediation(finding("redpanda"))
    assert "rpk topic alter-config TOPIC --set replication.factor=N" in text and "kafka-reassign-partitions" not in text
    text = render(safety.checked(replicas.bring_back("broker:5 down", facts), finding("redpanda", facts)), facts)
    assert text.startswith("# Start broker 5.") and "provider" not in text and "kafka-cluster" not in text
    steps = [Step(topic_setting("t", "a", 1), unless=safety.NO_LEADER)]
    assert "start the broker" in render(safety.checked(steps, finding("redpanda", FACTS)), FACTS)


@pytest.mark.parametrize("setting", ["min.insync.replicas", "unclean.leader.election.enable"])
def test_msk_serverless_fixes_settings_of_topics(setting):
    reason = safety.reason(
        topic_setting("t", setting, "false" if "unclean" in setting else 2), finding("msk-serverless")
    )
    assert reason.startswith("MSK Serverless fixes this setting of topics")


@pytest.mark.parametrize("provider", MANAGED)
def test_who_sees_no_controllers_logs_asks_the_provider_for_a_leader(provider):
    facts = ClusterFacts(provider=provider, lag_shares=1)
    for remedy in (elections.elect("t", [0], facts), replicas.bring_back(replicas.NO_LEADER, facts)):
        text = render(remedy, facts)
        assert "controller's log" not in text and "Ask the cluster's provider to elect one" in text
        assert "--unavailable-partitions" in text
    assert "First examine" not in render(replicas.bring_back("broker:3 lagging", facts), facts)


@pytest.mark.parametrize(("provider", "advised"), [("msk-serverless", False), ("msk-express", False), ("msk", True)])
def test_no_sentence_advises_a_setting_that_the_provider_fixes(provider, advised):
    meanwhile = Step(about=("If writes can't wait, set min.insync.replicas=1 on the topic.",))
    back = Step(about=("Ask the cluster's provider why replicas lag",))
    steps = providers.reworded([back, meanwhile], finding(provider))
    assert steps == ([back, meanwhile] if advised else [back])


@pytest.mark.parametrize(("provider", "said"), [("msk", True), ("self", False)])
def test_what_more_brokers_take_is_said_once(provider, said):
    more = [Step(about=("Add brokers in a third rack",)), Step(about=("Add brokers (3 required, the cluster has 2)",))]
    about = [text for step in providers.reworded(more, finding(provider)) for text in step.about]
    assert [text for text in about if "zones" in text] == about[1:2] * said
    assert len(about) == 2 + said
