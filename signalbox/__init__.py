"""Signalbox: a serverless message broker on AWS."""

__version__ = "0.3.0.dev0"
