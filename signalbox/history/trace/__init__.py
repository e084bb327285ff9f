"""The trace of one message: its events across all capabilities, its way, and its last known places."""
