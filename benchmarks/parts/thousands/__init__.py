"""The benchmark of thousands: users, connections, subscriptions and topics on one stage."""
