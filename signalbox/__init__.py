"""Signalbox: a serverless message broker on AWS."""

__version__ = "0.2.0"
