"""The infrastructure: one construct per capability, composed into two stacks."""
