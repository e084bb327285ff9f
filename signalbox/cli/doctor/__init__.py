"""The command `doctor`, which `deploy` runs first."""
