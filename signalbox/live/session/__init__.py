"""Sessions of connections: the state machine, its inbox and its effects."""
