"""Options that several commands have, with their environment variables and help."""

from __future__ import annotations

from typing import Any

import typer

INPUT, JUDGED, OUTPUT, EXITS = "What is read (one of)", "By what", "Where to", "Exit status and engine"


def option(name: str, panel: str, help: str, metavar: str = "FILE") -> Any:
    """An option with its environment variable."""
    variable = name.removeprefix("--").upper().replace("-", "_")
    return typer.Option(name, envvar=variable, help=help, metavar=metavar, rich_help_panel=panel)


BOOTSTRAP = option("--bootstrap", INPUT, "A cluster, by addresses of its brokers; commas between several.", "HOST:PORT")
TOPOLOGY = option(
    "--topology", INPUT, "A kafka-topology/1 document, or a folder of them: a fleet with its history.", "PATH"
)
CLUSTERS = option(
    "--clusters",
    INPUT,
    "A fleet: a clusters file. Without Airflow, the Connection NAME of a cluster is the JSON in AIRFLOW_CONN_NAME.",
)
CLUSTER = option(
    "--cluster",
    INPUT,
    "The cluster's name. It names that of --bootstrap (default: its address), or chooses one.",
    "NAME",
)
COMMAND_CONFIG = option(
    "--command-config",
    INPUT,
    "TLS and SASL settings of --bootstrap: a client.properties file, as Kafka's own tools take it.",
)
POLICY = option("--policy", JUDGED, "What is required of which topics (default: the shipped policy).")
WAIVERS = option("--waivers", JUDGED, "Accepted risks (default: the shipped file, which lists none).")
FRAMEWORK = option(
    "--framework",
    JUDGED,
    "Report only the controls that support a framework: soc2, iso27001, nist800-53 or dora (default: all controls).",
    "NAME",
)
OUT = option("--out", OUTPUT, "The folder for reports (default: out).", "FOLDER")
LAKE = option(
    "--lake",
    OUTPUT,
    "Where facts, results and history are kept: a folder or s3://bucket/prefix (default: OUT/lake for documents, "
    "else the state folder: .state/lake of a checkout, ~/.local/state/kafka-durability-audit/lake).",
    "PLACE",
)
FAIL_ON = option(
    "--fail-on",
    EXITS,
    "Exit with 1 when a finding is at least this severe: critical, warning or unknown; or new-critical, new-warning, "
    "new-unknown: only if the last run, or --baseline, didn't have it (default: never).",
    "LEVEL",
)
BASELINE = option(
    "--baseline",
    EXITS,
    "An earlier findings.json: its open findings don't count for --fail-on. Alone it means --fail-on new-critical.",
)
SIGNING_KEY = option(
    "--signing-key",
    OUTPUT,
    "The key that signs the evidence: an Ed25519 private key (PEM) in a file of mode 0600. Without it, the key of the "
    "Connection kafka_durability_signing; without that, the evidence is unsigned.",
)
AIRFLOW = typer.Option(
    "--airflow",
    help="Run the steps as Airflow tasks, as the DAGs do, instead of in this process.",
    rich_help_panel=EXITS,
)
LAKE_ALONE = option(
    "--lake", INPUT, "The lake: a folder or s3://bucket/prefix (default: that of cluster audits).", "PLACE"
)
