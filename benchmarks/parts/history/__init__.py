"""Parts of the history benchmark: writing, tables and cost."""
