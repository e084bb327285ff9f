"""Permissions of every role, one file for each capability."""
