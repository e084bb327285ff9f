"""AWS adapters of the target kinds: Lambda functions, ECS services and SSM parameters."""
