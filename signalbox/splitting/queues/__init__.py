"""Temporary queues: their names, attributes, IAM policy and removal."""
