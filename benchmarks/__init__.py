"""Benchmarks of Signalbox next to the originals; `make bench` runs them."""
