"""Live: WAMP over WebSocket; connections subscribe to what is published to an exchange, and see it at once."""
