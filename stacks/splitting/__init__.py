"""CDK constructs of splitting."""
