"""Programs that the benchmark of history runs in an environment of their own, which has DuckDB and Polars."""
