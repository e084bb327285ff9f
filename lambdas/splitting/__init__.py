"""The functions of splitting."""
