"""AWS adapters of splitting."""
