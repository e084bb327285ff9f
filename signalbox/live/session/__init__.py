"""Sessions of WebSocket connections: the state machine, its inbox, its effects and their execution."""
