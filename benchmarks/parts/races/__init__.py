"""Races of subscribing and publishing, and what each broker delivers in them."""
