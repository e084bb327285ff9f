"""Commands of live."""
