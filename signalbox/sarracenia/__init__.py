"""Sarracenia's conventions: how files are announced, under which topic, by whom and to whom."""
