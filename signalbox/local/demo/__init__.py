"""The demo: one program for each capability that shows on a running stage that the capability works."""
