"""The Lambda functions of rendezvous."""
