"""Parts of the exchange benchmark: binding lookup, SQS calls and latency."""
