"""User filters: regular expressions and jq programs with limits on time and memory."""
