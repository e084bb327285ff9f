"""A Lambda handler on the user's machine: its process, its reloads, and the loop over a session's queues."""
