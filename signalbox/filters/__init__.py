"""Languages of user filters: regular expressions and jq programs, each within bounds of time and memory."""
