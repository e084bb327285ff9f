"""The values of rendezvous: offers, proxies and paces."""
