"""The log of a topic: its events, retention, history requests and backfill."""
