"""Deployment settings: their definitions, their values and what follows from them."""
