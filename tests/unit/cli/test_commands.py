"""The program as a newcomer meets it: its help, its version, its schemas, and what it says where something is missing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from durability import schemas
from durability.cli.app import app
from tests import ROOT

VARIABLES = {
    *("BOOTSTRAP", "COMMAND_CONFIG", "CLUSTER", "CLUSTERS", "TOPOLOGY", "POLICY", "WAIVERS", "OUT", "LAKE"),
    *("FAIL_ON", "BASELINE", "SIGNING_KEY"),
}


def run(*arguments: str, **environ: str):
    wide = {"COLUMNS": "200", "TERMINAL_WIDTH": "200", "NO_COLOR": "1"}
    return CliRunner().invoke(app, arguments, env={**wide, **environ}, prog_name="kafka-durability")


def test_help_names_every_command_and_hides_those_of_set_up():
    said = run("--help").output
    for command in ("audit", "up", "demo", "restore", "verify", "schema"):
        assert f"│ {command} " in said
    assert "migrate" not in said and "classes" not in said


def test_help_of_audit_names_every_option_its_variable_and_the_exit_statuses():
    said = run("audit", "--help").output
    flags = {f"--{name.lower().replace('_', '-')}" for name in VARIABLES}
    assert all(flag in said for flag in flags | {"--airflow"})
    assert all(f"[env var: {name}]" in said for name in VARIABLES)
    assert "0 done, 1 --fail-on reached, 2 incomplete or refused" in said


def test_the_makefile_passes_every_variable_on():
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("export BOOTSTRAP")]
    assert set(line.split()) >= VARIABLES


def test_a_checkouts_version():
    assert run("--version").output == "kafka-durability 0.1.0\n"


def test_without_a_command_the_help_is_shown():
    assert "kafka-durability audit" in run().output


def test_an_option_that_is_given_twice_is_refused():
    """Only its last value would count: half of a loss would be predicted."""
    said = run("whatif", "--lose", "broker:1", "--lose", "rack:az2")
    assert said.exit_code == 2 and "Usage: kafka-durability whatif" in said.output
    assert "--lose is given 2 times, and takes one value" in said.output


def test_a_schema_is_printed_by_its_name():
    assert json.loads(run("schema", "policy").output)["$schema"]
    assert run("schema").output.split() == sorted(schemas.NAMES)
    refused = run("schema", "polcy")
    assert refused.exit_code == 2 and "error: there is no format polcy; there are clusters," in refused.output


def test_where_airflow_is_missing_it_is_said_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr("durability.cli.airflow_home.importlib.util.find_spec", lambda name: None)
    given = {"OUT": str(tmp_path / "out"), "LAKE": str(tmp_path / "lake"), "BOOTSTRAP": "127.0.0.1:1"}
    for arguments in (("up",), ("audit", "--airflow")):
        refused = run(*arguments, **given)
        assert refused.exit_code == 2 and "pip install 'kafka-durability-audit[airflow]'" in refused.output


def test_a_lake_that_is_not_there_is_not_restored(tmp_path):
    refused = run("restore", LAKE=str(tmp_path / "none"))
    assert refused.exit_code == 2 and f"error: LAKE={tmp_path / 'none'}: no such folder" in refused.output


@pytest.mark.parametrize("error", [RuntimeError("eu\x1b]0;owned\x07\nerror: forged"), SystemExit(1), MemoryError()])
def test_a_crash_is_not_taken_for_a_finding(error):
    command = f"""
import sys
from durability.lake import restore
def crash(location):
    raise {error!r}
restore.restore = crash
sys.argv = ["kafka-durability", "restore", "--lake", "/"]
from durability.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert not {"\x1b", "\x07"} & {*done.stderr} and "\nerror" not in done.stderr
    assert isinstance(error, SystemExit) or type(error).__name__ in done.stderr


def test_a_reader_that_goes_away_is_not_taken_for_a_finding():
    command = f"{sys.executable} -m durability.cli schema topology | true; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode != 1


def test_a_program_that_cannot_be_loaded_ends_with_2():
    command = "import sys; sys.modules['typer'] = None; from durability.cli import main; main()"
    assert subprocess.run([sys.executable, "-c", command], capture_output=True).returncode == 2


@pytest.mark.parametrize(
    ("targets", "undoes", "offered", "status"),
    [(["x"], None, True, 0), (["x"], None, False, 1), ([], None, False, 0), ([], "p1", False, 1)],
)
def test_a_plan_that_is_not_offered_though_there_is_something_to_do_exits_with_1(
    tmp_path, monkeypatch, targets, undoes, offered, status
):
    from contextlib import nullcontext
    from types import SimpleNamespace

    from durability.cli import change as command
    from durability.plan.chosen import Chosen
    from durability.remedies.change.model import Limits
    from durability.report import change as report
    from durability.steps import change
    from durability.steps.change_request import Request

    made = {"targets": targets, "undoes": undoes, "proof": {"offered": offered}}
    (tmp_path / report.PLAN).write_text(json.dumps(made))
    monkeypatch.setattr(change, "draft_change", lambda *_: None)
    monkeypatch.setattr(change, "prove", lambda *_: tmp_path)
    monkeypatch.setattr(report, "summary", lambda *_: ["said"])
    console = SimpleNamespace(running=nullcontext, line=lambda *_: None)
    snapshot, session = {"snapshot_id": "s1", "cluster": "eu"}, SimpleNamespace(folder=tmp_path)
    work = SimpleNamespace(console=console, settings=None, snapshot=snapshot, session=session, others=())
    plans = command._Plans(Request(Chosen(), Limits()))
    plans.draft(work)
    assert plans.prove(work) == status


def test_each_of_several_clusters_gets_a_plan_and_what_fails_costs_that_cluster_alone(tmp_path, monkeypatch, capsys):
    from types import SimpleNamespace

    from durability.cli import from_snapshot
    from durability.errors import Refused
    from durability.runtime import jars
    from durability.steps.evaluate import JobFailed

    rows = [
        {"cluster": "asia", "status": "rejected", "reason": "brokers are missing"},
        *({"cluster": name, "status": "accepted"} for name in ("eu", "us", "za")),
    ]
    monkeypatch.setattr(from_snapshot, "_snapshots", lambda *_: (None, rows))
    monkeypatch.setattr(jars, "java_command", lambda: "java")
    options = SimpleNamespace(out=tmp_path / "out", lake=str(tmp_path / "lake"), cluster=None)
    worked = []

    def work(one):
        worked.append(one.snapshot["cluster"])
        if worked[-1] == "eu":
            raise Refused("eu: its document isn't kept")
        if worked[-1] == "us":
            raise JobFailed("evaluate stopped")
        return 1

    monkeypatch.setenv("COLUMNS", "200")
    assert from_snapshot.run(options, "plan", work, {}, every=True) == 2
    said = capsys.readouterr()
    assert worked == ["eu", "us", "za"]
    assert [line for line in said.out.splitlines() if line] == [f"Cluster {row['cluster']}" for row in rows]
    assert said.err.splitlines() == [
        "error: asia: its snapshot can't be used: brokers are missing",
        "error: eu: its document isn't kept",
        "error: us: evaluate stopped",
    ]


def test_of_several_clusters_those_without_the_chosen_findings_or_topics_are_skipped(tmp_path, monkeypatch, capsys):
    from types import SimpleNamespace

    from durability.cli import change as command
    from durability.cli import from_snapshot
    from durability.cli.options import Given
    from durability.errors import Refused
    from durability.plan import chosen as asked
    from durability.report import change as report
    from durability.runtime import jars
    from durability.steps import change

    rows = [{"cluster": name, "status": "accepted", "snapshot_id": name} for name in ("asia", "eu", "us")]
    ids, names = {"asia": "a", "eu": "b", "us": "cccc1"}, {"asia": "pay-in", "eu": "pay-out", "us": "orders"}
    planned = []

    def draft_change(settings, snapshot, request, evaluate, reporter, opened, together):
        assert together.snapshots == rows
        cluster = snapshot["cluster"]
        found = {"control": "rack-loss", "resource": names[cluster], "resource_type": "topic"}
        asked.check_topic(request.chosen, [names[cluster]])
        opened.add(ids[cluster])
        targets = asked.targeted(request.chosen, [{**found, "id": ids[cluster]}], [f"closed-{cluster}"])
        return SimpleNamespace(cluster=cluster, targets=[one["id"] for one in targets])

    def prove(settings, drafted, results, reporter):
        planned.append(drafted.cluster)
        made = {"targets": drafted.targets, "undoes": None, "proof": {"offered": True}}
        (tmp_path / report.PLAN).write_text(json.dumps(made))
        return tmp_path

    monkeypatch.setattr(from_snapshot, "_snapshots", lambda *_: (None, rows))
    monkeypatch.setattr(jars, "java_command", lambda: "java")
    monkeypatch.setattr(change, "draft_change", draft_change)
    monkeypatch.setattr(change, "prove", prove)
    monkeypatch.setattr(report, "summary", lambda *_: ["said"])
    monkeypatch.setenv("COLUMNS", "200")
    options = SimpleNamespace(out=tmp_path / "out", lake=str(tmp_path / "lake"), cluster=None)

    def run(**given):
        planned.clear()
        return command.run(options, command.request(Given(given), options))

    assert run(findings="a,b") == 0 and planned == ["asia", "eu"]
    said = capsys.readouterr()
    assert said.err == ""
    assert [line for line in said.out.splitlines() if "Skipped" in line] == [
        "Skipped: --findings a: the cluster has no such finding"
    ]
    assert run(topic="pay-.*") == 0 and planned == ["asia", "eu"]
    assert run(findings="a", control="broker-rack") == 0  # the cluster has it, but the control leaves it out
    assert run(findings="a,cccc1", topic="pay-.*") == 0  # us has it, but no such topic
    capsys.readouterr()
    assert run(findings="a,closed-eu") == 2 and planned == ["asia"]
    assert capsys.readouterr().err == (
        "error: eu: --findings closed-eu: this finding isn't open, so nothing has to be fixed\n"
    )
    for given, says in (
        ({"findings": "cccc2"}, r"--findings cccc2: no cluster has such a finding; did you mean cccc1\?$"),
        ({"topic": "log-.*"}, "matches no topic of the cluster"),
        ({"findings": "a,cccc2"}, r"--findings cccc2: no cluster has such a finding; did you mean cccc1\?$"),
        (
            {"avoid": "rack:az1,broker:3"},
            "--avoid broker:3 means one cluster, .* name one with --cluster: asia, eu, us",
        ),
    ):
        with pytest.raises(Refused, match=says):
            run(**given)
        assert planned == (["asia"] if given.get("findings") == "a,cccc2" else [])
    assert run(avoid="rack:az1") == 0 and planned == ["asia", "eu", "us"]


@pytest.mark.parametrize(("options", "margin"), [(("--wave", "2"), 1), (("--wave", "2", "--margin", "0"), 0)])
def test_a_wave_is_checked_with_the_margin_of_its_plan(tmp_path, monkeypatch, options, margin):
    from types import SimpleNamespace

    from durability import collect
    from durability.restart import check

    checked = []

    def verdict(document, wave, margin, planned):
        checked.append((set(wave), margin))
        return SimpleNamespace(go=True, reasons=(), unavoidable=0, below_margin=0)

    monkeypatch.setattr(collect, "collect", lambda *_: SimpleNamespace(document={}))
    monkeypatch.setattr(check, "check", verdict)
    (tmp_path / "restart.json").write_text(json.dumps({"waves": [[1], [2, 3]], "limits": {"margin": 1}}))
    asked = ["restart-check", "--bootstrap", "b:9092", "--out", str(tmp_path), *options]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert checked == [({2, 3}, margin)]
