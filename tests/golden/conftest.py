"""AWS in this process, for every test here."""

from tests.fakes.aws import aws, exchange_table, lease_table, live_table, rendezvous_table, split_table

__all__ = ["aws", "exchange_table", "lease_table", "live_table", "rendezvous_table", "split_table"]
