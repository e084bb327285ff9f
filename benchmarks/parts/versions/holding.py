"""Holds a stage of the version whose folder is the current one: prints what describes it, and ends with its input.

Run as a file by the Python of that version, so it imports only what older versions have, too.
"""

import json
import sys

from benchmarks.shared.stage import running_stage

if __name__ == "__main__":
    with running_stage(port=int(sys.argv[1])) as stage:
        print(json.dumps(dict(stage.local)), flush=True)
        sys.stdin.read()
