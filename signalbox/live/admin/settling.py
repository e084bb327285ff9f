"""How long function instances keep what they have read about rights, and so how long a revocation waits.

An instance uses the items of a user's rights for `RIGHTS_KEPT_SECONDS` from the start of a strongly consistent read. A
command that takes rights away replies `RIGHTS_SETTLE_SECONDS` after its write: every read that began before the write
is then out of use, so no event that is published after the reply is posted with the old rights.
"""

RIGHTS_KEPT_SECONDS = 1.0
RIGHTS_SETTLE_SECONDS = 1.2
