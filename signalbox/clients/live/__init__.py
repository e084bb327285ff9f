"""WAMP sessions with the live router."""
