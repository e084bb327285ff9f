"""Routing: publications to queues, in order, with retries."""
