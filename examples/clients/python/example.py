"""Prints a container's log and the states of its record: `python example.py trial.container.42`."""

import os
import sys

from signalbox_live import Live

sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # into pipes and files, too
names = ("url", "realm", "user", "ticket")
live = Live(**{name: os.environ[f"SIGNALBOX_{name.upper()}"] for name in names})
container = sys.argv[1]
live.follow(f"{container}.log.", lambda event: print("log:", event.args[0]), match="prefix", last=100)
live.follow(f"{container}.record", lambda event: print("record:", event.args[0]["state"]), latest=True)
live.run()
