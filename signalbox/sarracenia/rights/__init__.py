"""Names of exchanges, queues and users, and the permissions that follow from them."""
