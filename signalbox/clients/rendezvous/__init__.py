"""A Snowflake client over SQS, and a simulated proxy for tests and measurements."""
