"""Reports of a run's findings for platform teams, on-call engineers and auditors, written by `durability.report.build`."""
