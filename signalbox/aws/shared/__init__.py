"""Adapters that several capabilities use."""
