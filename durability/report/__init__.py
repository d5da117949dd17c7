"""Reports of a run's findings, for a platform team, an engineer on call and an auditor; `durability.report.build` writes them."""
