"""The protocol of Arvados' WebSocket server: requests, filters, log rows, and the events that a connection gets."""
