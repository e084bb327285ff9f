"""The Lambda functions of the exchange."""
