"""Adapters of history."""
