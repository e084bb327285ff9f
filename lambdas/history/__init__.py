"""The Lambda function of the history."""
