"""Rendezvous: a Snowflake broker that matches clients with proxies."""
