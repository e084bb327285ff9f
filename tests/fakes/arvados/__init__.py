"""A stand-in for an Arvados cluster: its log endpoint over HTTP, and what its API server writes to PostgreSQL."""
