"""The activity of a stage, read from CloudWatch and the tables of splits and exchanges."""
