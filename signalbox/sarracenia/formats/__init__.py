"""Sarracenia's message formats v02 and v03, with topics, checksums and blocks."""
