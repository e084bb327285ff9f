"""Pure Spark transformations of frames; the session's time zone must be UTC."""
