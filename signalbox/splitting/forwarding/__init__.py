"""Routing decisions of splitting: filters, matching, forwarding and the return of messages."""
