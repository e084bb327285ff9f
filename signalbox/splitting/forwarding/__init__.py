"""Decisions on messages: filters, matching, forwarding and return."""
