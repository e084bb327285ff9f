"""The functions of live."""
