"""The values of rendezvous: offers, proxies and held polls."""
