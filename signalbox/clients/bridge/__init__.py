"""The client side of the bridge: a cluster's PostgreSQL database, a realm, and the loop between them."""
