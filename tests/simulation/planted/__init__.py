"""The planted faults of each capability."""
