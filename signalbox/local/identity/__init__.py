"""A real OpenID provider on this machine, for tests and for trying sign-in on the local stage."""
