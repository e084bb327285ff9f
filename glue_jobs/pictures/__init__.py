"""Report pictures as SVG for light and dark backgrounds, drawn from the same rows as the texts."""
