"""Parts of the benchmark that compares this version with another one in one run."""
