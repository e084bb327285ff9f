"""Subscribers and publishers of announced files, with the files themselves."""
