"""report.html."""
