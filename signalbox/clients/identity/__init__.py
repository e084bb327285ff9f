"""Sign-in with an identity provider: device codes, token renewal, and stored sign-ins."""
