"""Constructs of splitting."""
