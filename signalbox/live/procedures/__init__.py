"""Procedures that sessions can call: WAMP's meta API and our own."""
