"""WAMP: messages, options, URIs, patterns, and authentication."""
