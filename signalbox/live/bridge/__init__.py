"""The bridge from an Arvados cluster: rows of its table `logs` as publications of a realm, each exactly once."""
