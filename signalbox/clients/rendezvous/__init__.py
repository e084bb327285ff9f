"""A Snowflake client, and simulated peers for tests and measurements."""
