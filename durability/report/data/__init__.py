"""The data of reports: a run's rows of the lake, counted, grouped and sorted."""
