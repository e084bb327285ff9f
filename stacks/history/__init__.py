"""Constructs of history."""
