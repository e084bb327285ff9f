"""Adapters of splitting."""
