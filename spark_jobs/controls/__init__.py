"""One file a control, named like it: what it measures, and the finding it makes of that."""
