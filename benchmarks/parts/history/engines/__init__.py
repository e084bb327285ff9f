"""Programs of the history benchmark that run in a virtual environment with DuckDB."""
