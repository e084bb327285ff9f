"""The control plane of splitting: commands, and the reconcile loop that carries splits forward."""
