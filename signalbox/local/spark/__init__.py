"""Glue jobs on this machine: PySpark, the archives that it lacks, and the arguments of the history jobs."""
