"""The entry points: parse, decide, act."""
