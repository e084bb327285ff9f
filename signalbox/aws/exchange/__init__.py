"""AWS adapters of the exchange."""
