"""Rules of a subscription: accept and reject filters, duplicates and limits."""
