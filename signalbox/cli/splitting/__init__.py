"""Commands of splitting."""
