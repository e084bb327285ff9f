"""Texts of reports."""
