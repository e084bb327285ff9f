"""CDK constructs of the exchange."""
