"""The embedded default: an AWS on loopback, the deployed app in it, and the demo."""
