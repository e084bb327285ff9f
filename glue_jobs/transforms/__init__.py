"""Pure functions from frames to frames; they expect a session whose time zone is UTC."""
