"""Constructs of rendezvous."""
