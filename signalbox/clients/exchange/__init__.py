"""Publishers, consumers and administrators of exchanges."""
