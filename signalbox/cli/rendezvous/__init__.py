"""The commands `signalbox rendezvous`."""
