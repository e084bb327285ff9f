"""The function of history, and how the others write to it."""
