"""A JSON codec with the behaviour and the error texts of Go's `encoding/json`."""
