"""Adapters of live."""
