"""AWS's weather on the emulator: the faults, delays and limits that AWS documents, seeded and reproducible."""
