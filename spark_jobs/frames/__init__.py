"""Facts as columns: what was collected, joined and counted."""
