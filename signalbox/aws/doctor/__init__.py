"""Probes of `signalbox doctor`: each reads one fact of the account and changes nothing."""
