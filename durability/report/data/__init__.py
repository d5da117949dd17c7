"""What the reports show: a run's rows of the lake, counted, grouped and sorted."""
