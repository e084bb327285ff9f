"""The command `verify`: every capability of a stage, end to end."""
