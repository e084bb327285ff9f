"""Adapters of rendezvous."""
