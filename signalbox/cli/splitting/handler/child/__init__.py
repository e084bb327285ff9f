"""A folder of its own: Python finds its modules before those of the handler."""
