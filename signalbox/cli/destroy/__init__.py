"""The removal of a stage: its resources of run time, its stack, and on request its data."""
