"""The nightly run as a scheduler runs it: nobody holds the lake for it from outside."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import pytest

from durability.lake import catalog
from durability.runtime import lease, out_lock
from tests import ROOT
from tests.support import topology
from tests.support.airflow import run_dag


@pytest.mark.slow
def test_a_scheduled_night_has_the_lake_from_its_plan_to_its_end(tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    (tmp_path / "eu.json").write_text(json.dumps(topology.healthy()))
    place = catalog.place(str(tmp_path / "lake"))
    asked = {"topology": str(tmp_path / "eu.json"), "lake": place.location, "out": str(tmp_path / "out")}
    asked |= {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers")}
    spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
    seen = []
    with ThreadPoolExecutor(1) as beside:
        night = beside.submit(run_dag, tmp_path, "nightly_audit", asked, AIRFLOW_CONN_SPARK=spark)
        while not night.done():
            has = lease.current(place)
            seen.append(has.run.partition(":")[0] if has else None)
            time.sleep(0.2)
    states = night.result()
    assert set(states.values()) == {"success"} and "conclude" in states
    assert [run for run, _ in groupby(seen)] == [None, "nightly_audit", None]
    assert (tmp_path / "out" / "report.html").is_file()
    with out_lock.held([tmp_path / "out"]):
        pass
