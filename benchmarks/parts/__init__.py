"""The parts of a benchmark run, by capability."""
