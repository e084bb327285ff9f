"""Commands of history."""
