"""Reports for other programs.

JUnit XML and Markdown for CI, OCSF events for SIEMs, OSCAL for GRC tools, metrics for Prometheus.
"""
