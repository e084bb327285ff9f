"""The commands `history`, `report` and `replay`."""
