"""History: one event record, written by every capability, read by every job."""
