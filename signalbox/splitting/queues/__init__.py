"""Temporary queues: their attributes, permissions and removal."""
