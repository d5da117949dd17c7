"""What the lake keeps is exactly what its rules say: against an oracle that asks of each row for a reason to stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from durability.lake import retention
from durability.policy import Retention

NOW = datetime(2026, 11, 22, 4, 30, tzinfo=UTC)
DAY = timedelta(days=1)
CLUSTERS = ("eu", "us", "asia")
RETENTION = Retention(snapshots=10 * DAY, findings=40 * DAY, counters=60 * DAY, evidence_for=200 * DAY)
LOOK_BACK = timedelta(hours=30)


def ago(days: float) -> datetime:
    return NOW - days * DAY


def days(moment: datetime) -> float:
    """How many days ago the midnight before or at a moment is."""
    return (NOW.date() - moment.date()).days


@st.composite
def histories(draw):
    """Rows of `snapshots` and of `runs` over 300 days: reruns, rejected snapshots, documents of long ago, half-judged runs."""
    snapshots, runs = [], []
    hours = st.lists(st.integers(0, 300 * 24), min_size=1, max_size=14, unique=True)
    for number, age in enumerate(hour / 24 for hour in sorted(draw(hours), reverse=True)):
        entries = []
        for cluster in draw(st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=3, unique=True)):
            captured = ago(age + draw(st.sampled_from([0, 0, 0, 50, 500])))
            same = [s for s in snapshots if s["cluster"] == cluster]
            # A document again, or an attempt anew.
            again = draw(st.sampled_from(same)) if same and draw(st.booleans()) else None
            row = {
                "cluster": cluster,
                "snapshot_id": again["snapshot_id"] if again else f"{cluster}-{number}",
                "captured_at": again["captured_at"] if again else captured,
                "attempt_id": f"attempt-{cluster}-{number}",
                "status": draw(st.sampled_from(["accepted", "accepted", "rejected", "failed"])),
                "published_at": ago(age) + timedelta(seconds=draw(st.integers(0, 50))),
            }
            snapshots.append(row)
            entries.append({k: row[k] for k in ("cluster", "attempt_id", "status", "captured_at")})
        if draw(st.integers(0, 4)):  # else the run broke off
            judged = [e["captured_at"] for e in entries if e["status"] == "accepted"]
            row = {
                "run_id": f"run-{number}",
                "result_id": f"result-{number}",
                "captured_at": max(judged, default=ago(age)),
                "started_at": ago(age),
                "finished_at": ago(age) + timedelta(minutes=5),
                "status": draw(st.sampled_from(["complete", "complete", "incomplete", "unverified"])),
                "verified": draw(st.sampled_from([True, True, False])),
                "snapshots": entries,
            }
            runs.append(row)
    return snapshots, runs


def stays_in_full(run, runs) -> bool:
    """Is there a reason for everything of a run to stay?"""
    if days(max(run["captured_at"], run["finished_at"])) <= 40:
        return True
    later = [r for r in runs if r["finished_at"] > run["finished_at"]]

    def order(entry, of):
        return entry["captured_at"], of["finished_at"]

    for mine in run["snapshots"]:
        same = [order(e, r) for r in runs for e in r["snapshots"] if is_judged(e, mine["cluster"])]
        if is_judged(mine, mine["cluster"]) and order(mine, run) == max(same):
            return True
        speaking = [e for r in later for e in r["snapshots"] if e["cluster"] == mine["cluster"]]
        if not speaking or (mine["status"] == "accepted" and all(e["status"] != "accepted" for e in speaking)):
            return True
    return is_evidence(run, runs)


def is_judged(entry, cluster) -> bool:
    return entry["cluster"] == cluster and entry["status"] == "accepted"


def is_evidence(run, runs) -> bool:
    sound = [r for r in runs if r["status"] == "complete" and r["verified"]]
    month = [
        r
        for r in sound
        if (r["started_at"].year, r["started_at"].month) == (run["started_at"].year, run["started_at"].month)
    ]
    if run not in month or min(r["started_at"] for r in month) < run["started_at"]:
        return False
    return days(max(run["captured_at"], run["finished_at"])) <= 200


def facts_stay(row, snapshots, runs) -> bool:
    """Is there a reason for a snapshot's row, and its facts, to stay?"""

    def reason(mine) -> bool:
        if days(max(mine["captured_at"], mine["published_at"])) <= 10:
            return True
        judged = [
            e["attempt_id"] for r in runs if is_evidence(r, runs) for e in r["snapshots"] if e["status"] == "accepted"
        ]
        if mine["attempt_id"] in judged:
            return True
        shown = [s for s in snapshots if s["cluster"] == mine["cluster"] and newest(s)]
        accepted = [s for s in shown if s["status"] == "accepted"]
        return mine in accepted and order(mine) == max(map(order, accepted))

    def order(one):
        return one["captured_at"], one["published_at"]

    def newest(mine) -> bool:
        same = [s for s in snapshots if (s["cluster"], s["snapshot_id"]) == (mine["cluster"], mine["snapshot_id"])]
        return mine["published_at"] == max(s["published_at"] for s in same)

    same = [s for s in snapshots if (s["cluster"], s["snapshot_id"]) == (row["cluster"], row["snapshot_id"])]
    return reason(row) or (newest(row) and any(reason(s) for s in same))


@settings(max_examples=150, deadline=None)
@given(histories())
def test_what_goes_is_what_nothing_speaks_for(history):
    snapshots, rows = history
    decided = retention.plan(RETENTION, LOOK_BACK, NOW, snapshots, rows)
    assert set(decided.in_full) == {r["result_id"] for r in rows if stays_in_full(r, rows)}
    old = {r["result_id"] for r in rows if days(max(r["captured_at"], r["finished_at"])) > 60}
    assert set(decided.runs) == old - set(decided.in_full)
    stay = {s["attempt_id"] for s in snapshots if facts_stay(s, snapshots, rows)}
    assert set(decided.attempts) == {s["attempt_id"] for s in snapshots} - stay

    # What one upkeep left, the next leaves too.
    left = [s for s in snapshots if s["attempt_id"] in stay], [r for r in rows if r["result_id"] not in decided.runs]
    again = retention.plan(RETENTION, LOOK_BACK, NOW, *left)
    assert (again.attempts, again.runs) == ([], []) and set(again.in_full) == set(decided.in_full)


def test_nothing_that_readings_look_back_on_goes_whatever_the_policy_says():
    hasty = Retention(*[timedelta(hours=1)] * 4, evidence_for=DAY)
    cuts = retention.Cuts.of(hasty, timedelta(days=5), NOW)
    assert set(vars(cuts).values()) == {datetime(2026, 11, 16, tzinfo=UTC)}
    assert retention.Cuts.of(hasty, timedelta(hours=1), NOW).pulses == datetime(2026, 11, 20, tzinfo=UTC), (
        "two days, whole ones"
    )


def test_pulses_are_counted_as_long_as_their_details_stay():
    cuts = retention.Cuts.of(Retention(pulses=30 * DAY, counters=20 * DAY), LOOK_BACK, NOW)
    assert cuts.counters == cuts.pulses == datetime(2026, 10, 23, tzinfo=UTC)


def test_a_plan_is_read_as_it_was_written(tmp_path):
    entry = {"cluster": "eu", "attempt_id": "a", "status": "accepted", "captured_at": ago(300)}
    run = dict(run_id="r", result_id="r:1", captured_at=ago(300), started_at=ago(300), finished_at=ago(300))
    decided = retention.plan(
        RETENTION, LOOK_BACK, NOW, [], [{**run, "status": "complete", "verified": True, "snapshots": [entry]}]
    )
    assert decided.in_full == ["r:1"]
    assert retention.RetentionPlan.read(decided.write(tmp_path / "retention.json")) == decided
