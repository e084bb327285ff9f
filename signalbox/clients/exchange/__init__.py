"""Clients of the exchange: publishers, consumers and administrators."""
