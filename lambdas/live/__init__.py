"""The Lambda functions of live."""
