"""The deployed consumers on AWS, one file for each service that has some."""
