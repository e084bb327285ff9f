"""The parts of the benchmark of Arvados."""
