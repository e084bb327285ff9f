"""Client code: everything that uses a stage from outside."""
