"""Constructs of the exchange."""
