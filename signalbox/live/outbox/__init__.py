"""The outbox of a connection: its items, and their only writer."""
