"""report.pdf: the report for people who sign it."""
