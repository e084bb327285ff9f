"""Questions about the past: what a binding, a grant or a split would have matched, from the columns of the history."""
