"""Values of the exchange: topics, patterns, bindings, records and the ports to AWS."""
