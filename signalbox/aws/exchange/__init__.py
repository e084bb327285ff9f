"""Adapters of the exchange."""
