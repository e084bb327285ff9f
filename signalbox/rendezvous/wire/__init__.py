"""The wire formats of rendezvous: offers, polls, answers and replies."""
