"""Constructs of live."""
