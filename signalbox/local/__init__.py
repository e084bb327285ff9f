"""The local stage: an emulated AWS on this machine with the app deployed into it, its demo and the checks."""
