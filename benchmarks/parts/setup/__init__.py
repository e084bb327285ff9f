"""Parts of the benchmark of the local stage's set-up."""
