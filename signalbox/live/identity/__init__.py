"""The identity of token users: what a verified token of an identity provider says of its user."""
