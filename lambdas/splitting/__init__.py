"""The Lambda functions of splitting."""
