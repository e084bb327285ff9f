"""Adapters: one file a service; they translate, page, batch and map errors, and know no rules."""
