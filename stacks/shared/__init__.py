"""Constructs that several capabilities share."""
