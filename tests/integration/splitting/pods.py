"""Pods that are killed in the middle of their work."""

import random
from dataclasses import dataclass, field

from signalbox.local.demo.pods import Pods

AT_ONCE = {"gracePeriodSeconds": 0}


@dataclass(slots=True)
class KillablePods(Pods):
    """Pods of which one at a time is chosen at random and killed."""

    kills: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the choice is no secret

    def kill_one(self) -> None:
        """Kill the process of a pod, and the pod with it."""
        with self._lock:
            pods = [pod for pod in self._listed() if pod["metadata"]["uid"] in self._containers]
            pod = self._chance.choice(pods)
            self._containers.pop(pod["metadata"]["uid"]).end(killed=True)
            self.api.call("DELETE", self.path(pod["metadata"]["name"]), AT_ONCE)
            self.kills += 1
