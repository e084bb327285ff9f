"""The functions of rendezvous."""
