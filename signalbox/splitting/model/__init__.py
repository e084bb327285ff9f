"""Values of splitting: splits, sessions, targets, their records, and the ports to the outside."""
