"""Kubernetes workloads: their pod templates, rollouts, pods and field managers."""
