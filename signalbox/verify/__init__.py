"""The report of `signalbox verify`: names of a run's resources, results, answers and price."""
