"""The history events, counters, statistics and pages of rendezvous."""
