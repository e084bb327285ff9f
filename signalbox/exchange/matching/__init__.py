"""Topic matching: routing keys against the bindings of exchanges."""
