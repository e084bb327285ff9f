"""Deployed consumers: their registries, and the switch to temporary queues."""
