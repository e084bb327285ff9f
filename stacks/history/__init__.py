"""CDK constructs of the history."""
