"""Parts that several jobs share: arguments, tables, files and maintenance."""
