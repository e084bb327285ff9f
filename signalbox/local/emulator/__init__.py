"""The emulated AWS: MiniStack behind a gateway, in a process and a Python environment of its own."""
