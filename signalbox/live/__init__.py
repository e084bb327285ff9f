"""Live: WAMP over WebSocket; connections subscribe to the publications of an exchange and receive them at once."""
