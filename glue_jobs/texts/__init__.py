"""Report texts, one line of numbers for each row."""
