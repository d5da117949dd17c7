"""What `kafka-durability audit` refuses, what it takes for granted, and how its exit status comes about."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from durability import resources
from durability.cli import audit as command
from durability.cli import exit_status, inputs
from durability.cli.app import app
from durability.cli.console import Console
from durability.cli.exit_status import FailOn, known_findings, reached
from durability.cli.options import Given, checked
from durability.embedded_kafka.demo import CLUSTER_ID
from durability.errors import BadInput, Refused, Unreachable
from durability.report.data import outages
from durability.runtime import jars, out_lock
from durability.steps import journal
from durability.topology.document import LIVE
from tests import ROOT
from tests.support.lake import publish
from tests.support.topology import healthy

TYPO = (
    "format: durability-policy/1\nname: x\ntiers:\n  critical: {replication_facto: 3}\ntopics:\n  - {tier: critical}\n"
)


@pytest.fixture
def documents(tmp_path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    return folder


def audit(folder: Path, *flags: str, **given: str) -> subprocess.CompletedProcess:
    """`kafka-durability audit`, options in the environment or as flags."""
    environment = {**os.environ, "OUT": str(folder / "out"), "LAKE": str(folder / "lake"), **given}
    command = [sys.executable, "-m", "durability.cli", "audit", *flags]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=180)


def test_a_typo_in_the_policy_is_refused_with_file_and_line(tmp_path, documents):
    policy = tmp_path / "policy.yaml"
    policy.write_text(TYPO)
    done = audit(tmp_path, TOPOLOGY=str(documents), POLICY=str(policy))
    assert done.returncode == 2
    assert f"{policy}, line 4" in done.stderr and "replication_facto" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"TOPOLOGY": "/nowhere/at/all"}, "error: TOPOLOGY=/nowhere/at/all: no such file or folder"),
        (
            {"FRAMEWORK": "soc1"},
            'error: FRAMEWORK=soc1: there is no framework "soc1"; did you mean soc2? (known: soc2, ',
        ),
        ({"BOOTSTRAP": "broker-without-port"}, "is not host:port"),
        ({"BOOTSTRAP": "broker:99999"}, "is not host:port"),
        ({"BOOTSTRAP": "a:1", "TOPOLOGY": "/tmp"}, "BOOTSTRAP and TOPOLOGY were both given"),
        ({"BOOTSTRAP": "a:1", "FAIL_ON": "often"}, "error: FAIL_ON=often: expected one of never, critical, warning"),
        ({"BOOTSTRAP": "a:1", "POLICY": "/nowhere.yaml"}, "error: POLICY=/nowhere.yaml: no such file"),
        ({"BOOTSTRAP": "a:1", "BASELINE": str(ROOT / "README.md")}, "is no durability-findings/1"),
        ({"TOPOLOGY": str(ROOT), "COMMAND_CONFIG": "x"}, "COMMAND_CONFIG=x: it is for the cluster of --bootstrap"),
    ],
)
def test_options_that_name_nothing_or_contradict_each_other(tmp_path, given, said):
    done = audit(tmp_path, **given)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_flag_counts_before_its_variable_and_a_message_names_what_was_given(tmp_path):
    done = audit(tmp_path, "--topology", "/flag", TOPOLOGY="/variable", BOOTSTRAP="", FAIL_ON=" ")
    assert done.returncode == 2 and "error: --topology /flag: no such file or folder" in done.stderr
    done = audit(tmp_path, "--bootstrp", "a:1")
    assert done.returncode == 2 and "No such option: --bootstrp" in done.stderr


def test_an_out_folder_that_is_a_file(tmp_path, documents):
    (tmp_path / "out").write_text("mine")
    done = audit(tmp_path, TOPOLOGY=str(documents))
    assert done.returncode == 2 and "is a file, a folder is needed" in done.stderr
    assert (tmp_path / "out").read_text() == "mine"


def test_documents_get_a_lake_of_their_own_and_clusters_share_one(tmp_path, documents):
    out = str(tmp_path / "out")
    asked = checked(Given({"topology": str(documents), "out": out}))
    assert (asked.source, asked.lake, asked.fail_on) == ("topology", str(tmp_path / "out" / "lake"), FailOn.NEVER)
    asked = checked(Given({"bootstrap": "a:1, b:2", "out": out}))
    assert (asked.source, asked.bootstrap) == ("bootstrap", "a:1,b:2")
    assert asked.lake == str(ROOT / ".state" / "lake")
    assert asked.policy == ROOT / "policies" / "policy.yaml"


@pytest.mark.parametrize("command", [("whatif", "--lose", "rack:az1"), ("restart-plan",), ("plan",)])
def test_a_command_that_reads_a_lake_creates_none(tmp_path, command):
    lake, out = tmp_path / "typo", tmp_path / "out"
    done = CliRunner().invoke(app, [*command, "--lake", str(lake), "--out", str(out)])
    assert done.exit_code == 2 and f"--lake {lake}: no lake there" in done.stderr
    assert list(tmp_path.iterdir()) == []
    lake.mkdir()
    assert CliRunner().invoke(app, [*command, "--lake", str(lake), "--out", str(out)]).exit_code == 2
    assert list(tmp_path.rglob("*")) == [lake]


@pytest.mark.parametrize("command", ["audit", "plan"])
def test_a_folder_without_documents_is_refused_before_anything_is_made(tmp_path, command):
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "findings.json").write_text("{}")  # of an earlier run
    given = {"topology": str(tmp_path), "out": str(tmp_path / "reports"), "lake": str(tmp_path / "lake")}
    done = CliRunner().invoke(app, [command, *(word for name, value in given.items() for word in (f"--{name}", value))])
    assert done.exit_code == 2 and "no *.json file in this folder" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"reports"}


def test_a_check_of_a_wave_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "state_folder", lambda: tmp_path / "state")
    checked(Given({"bootstrap": "a:1", "out": str(tmp_path / "out")}), "unused")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["audit", "plan", "restart-plan"])
def test_without_java_nothing_is_made(tmp_path, documents, monkeypatch, command):
    jars.java_command.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    out, lake = tmp_path / "out", tmp_path / "lake"
    asked = ["--topology", str(documents), "--out", str(out), "--lake", str(lake)]
    try:
        done = CliRunner().invoke(app, [command, *asked])
    finally:
        jars.java_command.cache_clear()
    assert done.exit_code == 2 and f"no java in JAVA_HOME ({tmp_path / 'java'})" in done.stderr
    assert not out.exists() and not lake.exists()


def test_a_read_only_file_system_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    given = Given({})
    with pytest.raises(Refused, match="no permission to write there"):
        given.folder("out", tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(Refused, match="its file system is read-only"):
        given.folder("out", tmp_path)


def test_nothing_said_is_the_demo_with_its_own_policy(tmp_path):
    asked = checked(Given({"out": str(tmp_path), "bootstrap": " ", "topology": ""}))
    assert asked.source == "demo"
    assert asked.policy == ROOT / "policies" / "demo" / "policy.yaml"


def test_only_snapshots_of_the_embedded_cluster_have_its_policy(lake, tmp_path):
    given = {"out": str(tmp_path / "out"), "lake": lake.location}
    embedded = healthy(cluster="demo")
    embedded["cluster"]["kafka_cluster_id"] = CLUSTER_ID
    publish(lake, embedded, source=LIVE)
    demo, own = (ROOT / "policies" / folder / "policy.yaml" for folder in ("demo", ""))
    assert checked(Given(given), "read").policy == demo
    publish(lake, healthy(cluster="payments"), source=LIVE)
    policies = [checked(Given(given | {"cluster": name}), "read").policy for name in ("", "demo", "payments")]
    assert policies == [own, demo, own]


def test_an_installed_wheel_keeps_its_state_in_the_users_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "checkout", lambda: None)
    monkeypatch.delenv("DURABILITY_CACHE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/folders/do/not/count")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert resources.state_folder() == tmp_path / "state" / "kafka-durability-audit"
    assert resources.cache_folder() == tmp_path / "home" / ".cache" / "kafka-durability-audit"
    assert resources.shipped("policies", "policy.yaml") == ROOT / "durability" / "share" / "policies" / "policy.yaml"


def test_two_audits_of_one_folder(tmp_path):
    with out_lock.held([tmp_path]):
        with (
            pytest.raises(Unreachable, match=rf"another audit \(process {os.getpid()}\) is using"),
            out_lock.held([tmp_path]),
        ):
            pytest.fail("the lock was given twice")
        with out_lock.held([tmp_path / ".."]):
            pass
    with out_lock.held([tmp_path]):
        assert not any(tmp_path.iterdir())


def given_security(tmp_path, connection: dict | None = None, properties: str | None = None) -> dict:
    environ = {"AIRFLOW_CONN_KAFKA_BOOTSTRAP": json.dumps(connection)} if connection else {}
    config = None
    if properties is not None:
        config = tmp_path / "client.properties"
        config.write_text(properties)
    asked = SimpleNamespace(bootstrap="b:9093", command_config=config)
    return dict(inputs.cluster(tmp_path, "b:9093", "b", inputs.security(asked, environ)).connection)


def test_a_users_connection_keeps_its_security_settings(tmp_path):
    extra = {"security.protocol": "SASL_SSL", "bootstrap.servers": "other:1"}
    given = {"conn_type": "kafka", "password": "s", "extra": json.dumps(extra)}
    expected = {"security.protocol": "SASL_SSL", "bootstrap.servers": "b:9093", "sasl.password": "s"}
    assert given_security(tmp_path, given) == expected
    assert given_security(tmp_path) == {"bootstrap.servers": "b:9093"}


def test_a_command_config_counts_before_a_connection(tmp_path):
    connection = {"conn_type": "kafka", "extra": {"security.protocol": "SSL"}}
    made = given_security(tmp_path, connection, "security.protocol=SASL_SSL\nbootstrap.servers=c:1\n")
    assert made == {"security.protocol": "SASL_SSL", "bootstrap.servers": "b:9093"}


def test_a_fleets_connections_come_from_the_environment_without_airflow(tmp_path):
    fleet = inputs.documents_or_fleet(SimpleNamespace(topology=None, clusters=tmp_path / "clusters.yaml"))
    environ = {"AIRFLOW_CONN_EU": json.dumps({"host": "eu", "port": 9093, "login": "u", "password": "hunter2"})}
    settings = fleet.connect("eu", environ)
    assert settings == {"bootstrap.servers": "eu:9093", "sasl.username": "u", "sasl.password": "hunter2"}
    with pytest.raises(Refused, match="no Connection us: without Airflow, set AIRFLOW_CONN_US"):
        fleet.connect("us", environ)
    with pytest.raises(Refused, match="AIRFLOW_CONN_EU can't be used") as refused:
        fleet.connect("eu", {"AIRFLOW_CONN_EU": "kafka://u:hunter2@eu:9093"})
    assert "hunter2" not in str(refused.value)


def test_the_journal_gives_only_whole_lines(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    reader = journal.Reader(path)
    assert list(reader.new()) == []
    monkeypatch.setenv(journal.VARIABLE, str(path))
    journal.write("step", name="plan", state="done")
    with path.open("a") as file:
        file.write('{"event": "pro')
    assert [e["name"] for e in reader.new()] == ["plan"]
    with path.open("a") as file:
        file.write('blem", "text": "t"}\n')
    assert [e["text"] for e in reader.new()] == ["t"]


@pytest.mark.parametrize(
    ("outcomes", "reached_by"),
    [
        ([("FAIL", "critical")], {"critical", "warning", "unknown"}),
        ([("FAIL", "warning")], {"warning", "unknown"}),
        ([("UNKNOWN", None)], {"unknown"}),
        ([("FAIL", "info"), ("EXEMPT", "critical")], set()),
    ],
)
def test_how_severe_a_finding_ends_the_program_with_1(outcomes, reached_by):
    findings = [{"id": "x", "outcome": o, "severity": s, "change": "new"} for o, s in outcomes]
    both = reached_by | {f"new-{level}" for level in reached_by}
    assert {f for f in FailOn if reached(findings, f)} == both
    persisting = [{**f, "change": "persisting"} for f in findings]
    assert {f for f in FailOn if reached(persisting, f)} == reached_by
    assert {f for f in FailOn if reached(persisting, f, {})} == both
    assert not any(reached(persisting, f, {"x": 4}) for f in FailOn)
    resolved = [{**f, "change": "resolved"} for f in findings]
    assert not any(reached(resolved, f) for f in FailOn)


def finding(name: str, outcome: str = "FAIL", severity: str | None = "critical", change: str = "persisting") -> dict:
    return {"id": name, "outcome": outcome, "severity": severity, "change": change}


def baseline(folder: Path, *findings: dict) -> Path:
    path = folder / "baseline.json"
    path.write_text(json.dumps({"format": "durability-findings/1", "run": {}, "findings": findings}))
    return path


@pytest.mark.parametrize(
    ("before", "new"),
    [
        (finding("a"), False),
        (finding("b"), True),
        (finding("a", change="resolved"), True),
        (finding("a", outcome="EXEMPT"), True),
        (finding("a", severity="warning"), True),
    ],
)
def test_with_a_baseline_only_what_it_does_not_list_counts(tmp_path, before, new):
    known = known_findings(baseline(tmp_path, before), FailOn.NEW_CRITICAL)
    assert reached([finding("a")], FailOn.NEW_CRITICAL, known) is new


@pytest.mark.parametrize(
    ("before", "now", "reached_by"),
    [
        (("UNKNOWN", None), ("FAIL", "critical"), {"new-critical", "new-warning", "new-unknown"}),
        (("FAIL", "warning"), ("FAIL", "critical"), {"new-critical", "new-warning", "new-unknown"}),
        (("FAIL", "info"), ("FAIL", "warning"), {"new-warning", "new-unknown"}),
        (("EXEMPT", "critical"), ("FAIL", "critical"), {"new-critical", "new-warning", "new-unknown"}),
        (("FAIL", "critical"), ("FAIL", "warning"), set()),
        (("FAIL", "critical"), ("UNKNOWN", None), set()),
        (("FAIL", "critical"), ("FAIL", "critical"), set()),
    ],
)
def test_what_gets_worse_counts_as_new_with_and_without_a_baseline(tmp_path, before, now, reached_by):
    was = {"previous_outcome": before[0], "previous_severity": before[1]}
    found = [{**finding("a", *now), **was}]
    assert {level for level in FailOn if level.new_only and reached(found, level)} == reached_by
    file = baseline(tmp_path, finding("a", *before))
    of_file = {level for level in FailOn if level.new_only and reached(found, level, known_findings(file, level))}
    assert of_file == reached_by


def test_a_baseline_alone_means_new_critical_and_is_read_before_it_is_replaced(tmp_path, documents):
    path = baseline(tmp_path, finding("a"), finding("b", "UNKNOWN", None))
    asked = checked(Given({"topology": str(documents), "out": str(tmp_path), "baseline": str(path)}))
    assert (asked.fail_on, asked.known) == (FailOn.NEW_CRITICAL, {"a": 4})
    path.write_text('{"format": "durability-findings/1", "findings": [{"name": 1}]}')
    with pytest.raises(BadInput, match="expected findings with id, outcome and severity"):
        checked(Given({"topology": str(documents), "out": str(tmp_path), "baseline": str(path)}))


def test_the_steps_of_a_rack_outage_are_among_the_reports(tmp_path, monkeypatch):
    document = {
        "format": "durability-findings/1",
        "run": {"snapshots": []},
        "findings": [],
        "summary": {"clusters": {}},
    }
    (tmp_path / "findings.json").write_text(json.dumps(document))
    (tmp_path / outages.FILE).touch()
    shown = []
    monkeypatch.setattr("durability.report.text.console.summary_text", lambda _, paths, **__: shown.extend(paths) or "")
    asked = SimpleNamespace(out=tmp_path, fail_on=FailOn.NEVER, known=None)
    command._conclude(asked, True, 0.0, tmp_path / "log", Console(io.StringIO(), io.StringIO()))
    assert [path.name for path in shown] == ["findings.json", outages.FILE, "log"]


@pytest.mark.parametrize(("status", "said"), [("failed", "nothing could be read"), ("accepted", "what could be read")])
def test_an_incomplete_audit_says_what_its_report_is_worth(tmp_path, monkeypatch, status, said):
    snapshots = [{"cluster": "a", "status": status}, {"cluster": "b", "status": "failed"}]
    document = {"format": "durability-findings/1", "run": {"snapshots": snapshots}, "findings": []}
    document["summary"] = {"clusters": {}}
    (tmp_path / "findings.json").write_text(json.dumps(document))
    monkeypatch.setattr("durability.report.text.console.summary_text", lambda *_, **__: "")
    errors = io.StringIO()
    asked = SimpleNamespace(out=tmp_path, fail_on=FailOn.NEVER, known=None)
    console = Console(io.StringIO(), errors)
    console.problem("collect", "why")
    assert command._conclude(asked, False, 0.0, tmp_path / "log", console) == exit_status.INCOMPLETE
    assert said in errors.getvalue() and "error: why" in errors.getvalue()


def test_a_signing_key_that_cannot_be_used_is_refused_before_anything_is_read(tmp_path, documents):
    key = tmp_path / "key.pem"
    key.write_text("hunter2")
    key.chmod(0o644)
    for path, said in ((key, "has mode 0644"), (tmp_path / "none.pem", "no such file")):
        done = audit(tmp_path, TOPOLOGY=str(documents), SIGNING_KEY=str(path))
        assert done.returncode == 2 and f"{path}" in done.stderr and said in done.stderr
        assert "hunter2" not in done.stderr + done.stdout and not (tmp_path / "out").exists()
