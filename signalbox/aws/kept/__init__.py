"""AWS adapters of kept messages: the settings of queues in DynamoDB, and the messages in S3."""
