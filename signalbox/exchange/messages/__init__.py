"""Messages of the exchange: properties, headers, publications and their copies."""
