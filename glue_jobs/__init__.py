"""Spark jobs over the history: entry scripts here, and what they compute in `transforms`."""
