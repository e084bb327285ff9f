"""Sarracenia clients: subscribers that download announced files, and publishers that announce files."""
