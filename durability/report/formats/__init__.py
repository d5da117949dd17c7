"""Reports for other programs: JUnit XML for CI servers, metrics for Prometheus."""
