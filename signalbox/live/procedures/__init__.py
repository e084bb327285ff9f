"""The procedures that WAMP sessions can call, and the meta events."""
