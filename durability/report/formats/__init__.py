"""Reports for other programs: JUnit XML for CI servers, OCSF events for SIEMs, metrics for Prometheus."""
