"""Parts of the splitting benchmark: SQS calls, filter evaluation and latency."""
