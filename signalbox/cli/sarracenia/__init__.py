"""Commands that announce and fetch files."""
