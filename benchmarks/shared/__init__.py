"""Modules that several benchmarks share: stages, statistics, reports and processes."""
