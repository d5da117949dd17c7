"""The report's part "What a failure would cost"."""

from __future__ import annotations

import re

import pytest

from durability.report.data import failure_costs
from durability.report.data.loss_sets import COLUMNS
from tests.support.failure_costs import Cluster, Partition, of_brokers
from tests.support.failure_costs import tables as rows_of
from tests.support.html import SCRIPT, parse
from tests.support.report_cases import finding, snapshot, written

RACKS = {1: "az1", 2: "az2", 3: "az3"}
LONE = Partition("lone", (3,), (3,), 1)
PAIR = Partition("pair", (1, 2), (1, 2), 2)


def entry_of(cluster: Cluster) -> dict:
    costs, sets = rows_of([cluster])
    return failure_costs.entry(snapshot(cluster.name), costs.to_pylist(), sets.select(COLUMNS), of_brokers(cluster), ())


def page(out, *clusters: Cluster, rows=(), more=()) -> str:
    """The HTML of the part. more: snapshots without an entry."""
    snapshots = [*(snapshot(cluster.name) for cluster in clusters), *more]
    written(list(rows), out, losses=[entry_of(cluster) for cluster in clusters], snapshots=snapshots)
    html = (out / "report.html").read_text(encoding="utf-8")
    parse(html)
    return re.search(r'<section id="failures">.*?</section>', html, re.DOTALL)[0]


def test_the_worst_broker_and_rack_are_named_with_what_breaks(tmp_path):
    words, _ = parse(page(tmp_path, Cluster("eu", RACKS, [LONE, LONE, PAIR])))
    said = "now, 2 partitions with data at risk, 2 offline, 2 whose writes are rejected"
    assert f"Worst broker: broker 3 : {said}" in words
    assert f"Worst rack: rack az3 : {said}" in words
    assert "Quorum lost" not in words and "majority without" not in words


def test_every_broker_and_rack_is_in_the_heat_map_with_its_numbers(tmp_path):
    html = page(tmp_path, Cluster("eu", RACKS, [LONE, LONE, PAIR], quorum={"az2"}))
    words, _ = parse(html)
    rows = words[words.index("no loss broken already") : words.index("Held : partitions with")]
    assert rows.startswith("no loss broken already 0 0 0 0 0 0 0 0 rack az2 1 0 0 0 1 0 0 1 0 0 lost")
    assert "rack az3 2 2 2 2 2 2 2 2 2 2 kept rack-loss" in rows
    assert "broker 1 1 1 0 0 1 0 0 1 0 0 kept broker-loss broker 2 1 0" in rows
    assert "The controllers lose their majority without rack az2. Then no leader is elected" in words
    assert '<td class="num first" title="2 partitions of 1 topic">' in html
    assert "<title>broker 3, data: 2 partitions of 1 topic</title>" in html
    assert "<title>rack az2, controllers' majority: lost</title>" in html


def test_the_fewest_waves_of_a_restart_are_told_or_that_they_are_unknown(tmp_path):
    spread = Partition("spread", (1, 2, 3), (1, 2, 3), 2)
    words, _ = parse(page(tmp_path, Cluster("eu", RACKS, [LONE, spread])))
    assert "Restarts: in 3 waves all brokers and voters restart" in words and "No plan has fewer." in words
    words, _ = parse(page(tmp_path, Cluster("eu", RACKS, [LONE, spread], unknown=1)))
    assert "Restarts: it is unknown how few waves are enough." in words


def test_k_failures_have_their_probabilities_and_the_smallest_sets_are_listed(tmp_path):
    words, _ = parse(page(tmp_path, Cluster("eu", RACKS, [LONE, PAIR])))
    assert "1 broker 3 33.3 % (1) 33.3 % (1) 100 % (3)" in words
    assert "2 brokers 3 100 % (3)" in words and "3 racks 1 100 % (1)" in words
    assert "brokers: data at risk 1 broker : 3 (1 partition), 1 + 2 (1 partition)" in words
    assert "if that many random brokers or racks fail at once" in words
    assert "This isn't the probability of a failure within a year." in words


def test_a_cost_links_to_the_finding_that_names_the_broker(tmp_path):
    def lost(resource, name):
        return finding(resource, "broker-loss", cluster="eu", observed={"lost": [name], "breaks": "data"})

    rows = [lost("pair", "1"), lost("lone", 3)]
    html = page(tmp_path, Cluster("eu", RACKS, [LONE, PAIR]), rows=rows)
    for row, name in ((rows[0], "pair"), (rows[1], "lone")):
        assert f'<a href="#f-{row["id"]}">fix for {name}</a>' in html
    assert html.index("fix for lone") < html.index("fix for pair")
    assert '<a href="#control-rack-loss">rack-loss</a>' in html


def test_a_cluster_that_loses_nothing_has_no_fix(tmp_path):
    words, reader = parse(page(tmp_path, Cluster("eu", RACKS, [Partition("t", (1, 2, 3), (1, 2, 3), 1)])))
    assert "Worst broker: broker 1 : worst case, 1 partition with data at risk, 1 offline" in words
    spare = Partition("t", (1, 2, 3), (1, 2, 3), 2)
    words, reader = parse(page(tmp_path, Cluster("eu", RACKS, [spare])))
    assert "Worst broker: broker 1 breaks no partition." in words
    assert "brokers: writes rejected 2 brokers : 1 + 2 (1 partition)" in words
    [*_, last] = [value for _, name, value in reader.attributes if name == "href"]
    assert last == "#control-rack-loss"


@pytest.mark.parametrize("more", [[snapshot("older")], [snapshot("dead", "failed", reason="no answer")]])
def test_an_unknown_cost_is_never_nothing(tmp_path, more):
    words, _ = parse(page(tmp_path, more=more))
    why = "this run didn't compute its losses" if more[0].status == "accepted" else "failed: no answer"
    assert f"It is unknown what a failure would cost in {more[0].cluster} ({why})." in words
    assert "breaks no" not in words and "no set" not in words


def test_partitions_that_could_not_be_judged_are_said(tmp_path):
    words, _ = parse(page(tmp_path, Cluster("eu", RACKS, [Partition("t", (1, 2, 3), (1, 2, 3), 2)], unknown=4)))
    assert (
        "At least 4 partitions could not be judged for some loss: a fact is missing. The real costs may be higher."
        in words
    )
    assert "broker 1 breaks no partition that could be judged" in words
    assert "racks: data at risk 3 racks" in words
    assert "A question mark beside a name: some partitions could not be judged" in words


def test_a_cluster_without_known_brokers_has_no_picture(tmp_path):
    words, _ = parse(page(tmp_path, Cluster("eu", {}, [])))
    assert "No broker is known." in words and "The stronger a cell's colour" not in words


def test_a_broker_that_is_down_is_marked(tmp_path):
    cluster = Cluster("eu", RACKS, [LONE, Partition("t", (1, 2), (1,), 1)], down=(2,))
    words, _ = parse(page(tmp_path, cluster))
    assert "broker 2 is down 1 0 0 0 0" in words and words.count("is down") == 1
    # Two brokers are up. By structure, the second partition needs the loss of the broker that is down.
    assert "1 broker 2 100 % (2) 100 % (2) 100 % (2) 50 % (1)" in words


def test_a_fleet_has_a_line_per_cluster_and_details_of_the_worst(tmp_path):
    clusters = [Cluster(f"c{n:02}", RACKS, [LONE] * n + [PAIR]) for n in range(1, 13)]
    html = page(tmp_path, *clusters)
    words, _ = parse(html)
    names = re.findall(r'<tr><th scope="row">(c\d\d)', html)
    assert names == [f"c{n:02}" for n in range(12, 0, -1)]
    assert re.findall(r"<h3>(c\d\d)", html) == ["c12", "c11", "c10", "c09", "c08"]
    assert "Details of the 5 clusters that lose most. The details of the others are in losses.json." in words
    assert "c12 3 12 12 12 12 az3 12 12 12 12 none 1 · 1 · 1 100 % 1 broker , rack" in words


def test_a_large_fleet_stays_small(tmp_path):
    clusters = [Cluster(f"cluster-{n}", RACKS, [LONE, PAIR]) for n in range(310)]
    html = page(tmp_path, *clusters)
    assert "10 more clusters in losses.json" in html and len(html) < 700_000


def test_many_brokers_are_cut(tmp_path):
    partitions = [Partition("t", (n,), (n,), 1) for n in range(1, 41)]
    words, _ = parse(page(tmp_path, Cluster("eu", {n: f"az{n}" for n in range(1, 41)}, partitions)))
    assert "32 more racks in losses.json. 30 more brokers in losses.json." in words
    assert "brokers: offline 1 broker : 1 (1 partition), 2 (1 partition), 3 (1 partition), 37 more sets" in words
    assert "4 brokers estimate" in words


def test_hostile_names_stay_text(tmp_path):
    rows = [finding(SCRIPT, "rack-loss", cluster=SCRIPT, observed={"lost": [SCRIPT]}, id=SCRIPT)]
    cluster = Cluster(SCRIPT, {1: SCRIPT, 2: "b", 3: "c"}, [LONE, PAIR], quorum={SCRIPT})
    _, reader = parse(
        page(tmp_path, cluster, cluster, rows=rows, more=[snapshot(SCRIPT + "2", "failed", reason=SCRIPT)])
    )
    assert not reader.tags & {"script", "img"}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on") or name == "style"]
