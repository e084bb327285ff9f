"""Commands of splitting: `signalbox split`."""
