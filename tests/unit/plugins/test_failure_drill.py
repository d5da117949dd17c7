"""The task `wait` of failure_drill: deferred while brokers are live, done when they are fenced, failed when it takes too long."""

from __future__ import annotations

import json

from tests.support.airflow import result, run_in_airflow

SOURCE = """
import json, os
from datetime import timedelta
from types import SimpleNamespace
from airflow.sdk import timezone
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred
from durability.errors import Unreachable
from durability.steps import drill
from kafka_durability.whatif import WaitForLossOperator

paths = {name: os.environ["CLUSTERS"] for name in ("policy", "waivers", "clusters")}
params = {**paths, "out": "out", "lake": "lake", "topology": None, "compare": True, "within": 5}
made = {"run_id": "r", "result_id": "r:1", "whatif.json": os.environ["PREDICTED"]}

def look(live, minutes_ago=1, enter="look", **changed):
    def answer(cluster, connect):
        if isinstance(live, Exception):
            raise live
        return frozenset(live)
    drill.live = answer
    context = {"params": {**params, **changed}}
    made_at = (timezone.utcnow() - timedelta(minutes=minutes_ago)).isoformat()
    task = WaitForLossOperator(task_id="wait", made=made | {"made_at": made_at})
    try:
        return getattr(task, enter)(context)
    except TaskDeferred as deferred:
        return [type(deferred.trigger).__name__, deferred.method_name]
    except (AirflowFailException, AirflowSkipException) as error:
        return f"{type(error).__name__}: {error}"

print("RESULT", json.dumps([
    look({1, 2, 3}), look({2, 3}), look({1, 2}, 6), look({1}, enter="execute", compare=False),
    look({1, 2, 3}, enter="execute"), look(Unreachable("no answer")), look(Unreachable("no answer"), 6), look({2}, 6),
]))
"""


def test_it_defers_until_the_brokers_are_fenced_and_no_longer_than_it_may(tmp_path):
    clusters, predicted = tmp_path / "clusters.yaml", tmp_path / "whatif.json"
    listed = [{"id": "eu", "connection": "kafka_eu", "provider": "self"}]
    clusters.write_text(json.dumps({"format": "durability-clusters/1", "clusters": listed}))
    predicted.write_text(json.dumps({"cluster": "eu", "lose": {"brokers": [1, 4]}, "quorum": None}))
    seen = result(run_in_airflow(tmp_path, SOURCE, CLUSTERS=str(clusters), PREDICTED=str(predicted)))
    assert seen[0] == seen[4] == seen[5] == ["TimeDeltaTrigger", "look"]
    assert seen[1] == seen[7] == [1, 4]
    assert seen[2].startswith("AirflowFailException: the loss didn't happen within 5 minutes: broker 1 is still live.")
    assert seen[3].startswith("AirflowSkipException")
    assert seen[6] == (
        "AirflowFailException: the loss could not be seen within 5 minutes: no answer. Nothing was compared"
    )
