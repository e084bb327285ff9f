"""One flow for each capability: `make up` prints it, `signalbox verify` reports it, and the soak repeats it."""
