"""Commands of rendezvous."""
