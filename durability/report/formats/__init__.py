"""Reports for other programs: JUnit XML and Markdown for CI, OCSF events for SIEMs, metrics for Prometheus."""
