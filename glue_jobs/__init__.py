"""Glue jobs over the history: the entry scripts, with their transformations, texts and pictures in subpackages."""
