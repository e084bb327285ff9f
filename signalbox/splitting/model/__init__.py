"""Values of splitting: splits, sessions, targets, their records, and the storage and AWS ports."""
