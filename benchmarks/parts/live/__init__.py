"""Parts of the live benchmark: Signalbox, its rules in memory, and crossbar."""
