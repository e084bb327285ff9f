"""Pictures of reports, as SVG that reads well on light and dark paper, drawn from the rows that their texts tell."""
