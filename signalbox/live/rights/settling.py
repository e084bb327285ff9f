"""How long function instances keep what they have read about rights, and so how long a revocation waits.

An instance uses the items of a user's rights for `RIGHTS_KEPT_SECONDS` from the start of a strongly consistent read. A
command that takes rights away replies `RIGHTS_SETTLE_SECONDS` after its write: every read that began before the write
is then out of use, so no event that is published after the reply is posted with the old rights.

Each change of rights also raises the version of all rights after its write. An instance reads the version once in
`RIGHTS_KEPT_SECONDS`. While it is the one that the instance knew before it read the items, they have not changed, and
the instance uses them for `UNCHANGED_RIGHTS_KEPT_SECONDS`; otherwise it reads them again. That bounds the delay of a
change that raises no version: one by a command that was killed.
"""

RIGHTS_KEPT_SECONDS = 1.0
RIGHTS_SETTLE_SECONDS = 1.2
UNCHANGED_RIGHTS_KEPT_SECONDS = 60.0
