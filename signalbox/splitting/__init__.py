"""Splitting: several people and the deployed consumer share a queue; each gets the messages that are theirs."""
