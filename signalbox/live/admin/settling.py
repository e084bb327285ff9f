"""How long function instances keep what they have read about rights, and so how long a revocation waits.

An instance uses the items of a user's rights for `RIGHTS_KEPT_SECONDS` from the start of a strongly consistent read. A
command that takes rights away raises the stage's number of revocations after its write, and replies
`RIGHTS_SETTLE_SECONDS` later: every read that began before is then out of use, so no event that is published after the
reply is posted with the old rights.

While the number, which an instance reads once in `RIGHTS_KEPT_SECONDS`, is the one that it knew before it read the
items, no right of them was revoked, and it uses them for `UNREVOKED_RIGHTS_KEPT_SECONDS`. That bounds the delay of a
change that raises no number: one by a command of an older version, or of a command that was killed.
"""

RIGHTS_KEPT_SECONDS = 1.0
RIGHTS_SETTLE_SECONDS = 1.2
UNREVOKED_RIGHTS_KEPT_SECONDS = 60.0
