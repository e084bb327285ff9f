"""Fault injection in the emulator: faults, delays and limits that AWS documents, repeated by their seed."""
