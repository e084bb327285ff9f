"""A Lambda handler as a session's consumer: Lambda's event, its answer, and the settings of function and mapping."""
