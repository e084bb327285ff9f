"""The removal of a stage: what it created at run time, its stack, and its data when asked for."""
