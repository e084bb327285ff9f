"""Splitting: several users and the deployed consumer share a queue; each receives only their own messages."""
