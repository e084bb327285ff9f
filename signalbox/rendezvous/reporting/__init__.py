"""Events, counters and statistics of rendezvous."""
