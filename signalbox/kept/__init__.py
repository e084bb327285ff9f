"""Kept messages: what passes a split or an exchange, stored for a set time, if a queue's setting says so."""
