"""Every remedy that starts brokers states the order in which they must start."""

from __future__ import annotations

import pytest

from durability.remedies import elections, starts
from durability.remedies.cluster import KEY, ClusterFacts, StartsFirst
from durability.remedies.steps import Step, advice

FIRST = (StartsFirst((3,), 1, "orders-0", True),)
ORDER = (
    "Start broker 3 first: other replicas of partition orders-0 may lack acknowledged records, and one that starts earlier"
    " leads."
)


def ordered(sentence: str, needed=FIRST, provider: str | None = None) -> list[str]:
    finding = {KEY: ClusterFacts(provider=provider, starts_first=needed)}
    return [text for step in starts.ordered([Step(about=(sentence,))], finding) for text in step.about]


@pytest.mark.parametrize(
    "sentence",
    [
        "Start brokers 2, 3. Then this lists no partition",
        "Start broker 2",
        "First start brokers 2, 3, or move their replicas",
        "Start the brokers that are down, or add brokers or racks",
        "start broker 3 and the brokers of rack az1",
        "Bring back brokers 2, 3, which stuck reassignments wait for",
    ],
)
def test_a_remedy_that_starts_another_broker_has_the_order(sentence):
    assert ordered(sentence) == [ORDER, sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Start broker 3. Then this lists no partition",
        "Find why replicas lag (broker:2 lagging)",
        "Start voter 2, or see in its log why it isn't caught up",
        "Set broker.rack in server.properties of broker 2, and restart it",
        "Start broker 3 before the other replicas of partition 0: these may lack acknowledged records. Start brokers 2, 3",
    ],
)
def test_other_remedies_stay(sentence):
    assert ordered(sentence) == [sentence]


def test_a_reason_against_a_command_has_it_too():
    finding = {KEY: ClusterFacts(starts_first=FIRST)}
    steps = starts.ordered([Step(unless="First start broker 2")], finding)
    assert steps == [*advice(ORDER), Step(unless="First start broker 2")]


def test_without_such_brokers_and_where_a_provider_starts_them_nothing_changes():
    assert ordered("Start broker 2", ()) == ["Start broker 2"]
    assert ordered("Start the brokers that are down", provider="msk") == ["Start the brokers that are down"]


@pytest.mark.parametrize(
    ("sentence", "texts"),
    [
        (f"{elections.CONTROLLERS_FIRST}. Then start brokers 2, 3", ["{}", ORDER]),
        ("Start the brokers that are down", [f"{elections.CONTROLLERS_FIRST}.", ORDER, "{}"]),
    ],
)
def test_no_broker_starts_before_the_controller_quorum_is_restored(sentence, texts):
    finding = {KEY: ClusterFacts(led=False, starts_first=FIRST)}
    steps = starts.ordered([Step(about=(sentence,))], finding)
    assert [text for step in steps for text in step.about] == [text.format(sentence) for text in texts]
