"""The control plane of splitting: its commands, and the reconcile loop that moves splits forward."""
