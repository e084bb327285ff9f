"""Sarracenia: names and permissions of users, topics of messages, and broker URLs of sr3."""
