"""Parts of the benchmark of the functions' imports."""
