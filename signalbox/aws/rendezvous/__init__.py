"""The AWS adapters of rendezvous."""
