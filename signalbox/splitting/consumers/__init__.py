"""Deployed consumers: their registries, and how they are switched to temporary queues."""
