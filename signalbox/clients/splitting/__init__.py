"""Splitting sessions as their owners use them."""
