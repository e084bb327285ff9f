"""The synthesized app: what it was made of, what it contains, and its deployment into the emulator."""
