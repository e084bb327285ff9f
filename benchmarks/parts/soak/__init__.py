"""Parts of the soak: one load for each capability, and the accounts of their messages."""
