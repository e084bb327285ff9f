"""The rules of rendezvous: the states of an offer, and one service for each function."""
