"""The functions of the exchange."""
