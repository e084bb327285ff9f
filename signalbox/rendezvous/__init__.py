"""Rendezvous: Snowflake clients and proxies find each other."""
