"""Clients of splitting: session commands over the control queue."""
