"""Health over time, and the steps of a rack outage."""
