"""Kubernetes clusters whose workloads are targets of splitting: their API, connections and tokens."""
