"""The index of events by id: its documents and blocks, and raw files that it does not cover yet."""
