"""A fake of the parts of sr3 that its drivers use: messages are dictionaries in JSON."""

import json
import sys
import time
from types import ModuleType
from typing import Any

import pytest


class Message(dict[str, Any]):
    def deriveSource(self, _options: Any) -> None:  # noqa: N802 (sr3's name, like all with capitals here)
        self["source"] = "alice"

    def deriveTopics(self, _options: Any, topic: str) -> None:  # noqa: N802
        self["subtopic"] = topic.split(".")[1:]

    def validate(self) -> bool:
        return "relPath" in self


class PostFormat:
    @staticmethod
    def importAny(body: str, headers: dict[str, str], content_type: str, _options: Any) -> Message | None:  # noqa: N802
        if content_type not in ("application/json", "application/x-ours"):
            return None
        return Message({**json.loads(body), **headers, "_format": content_type, "_deleteOnPost": set()})

    @staticmethod
    def exportAny(message: Message, form: str, prefix: list[str], _options: Any) -> tuple[Any, Any, Any]:  # noqa: N802
        types = {"v03": "application/json", "ours": "application/x-ours"}
        if form not in types:
            return None, None, None
        headers = {"topic": [*prefix, *message["relPath"].split("/")[:-1]], "size": 7}
        return json.dumps(message), headers, types[form]


class Moth:
    def __init__(self, props: dict[str, Any], is_subscriber: bool) -> None:  # noqa: FBT001 - sr3's interface
        self.is_subscriber = is_subscriber
        self.o = {"dry_run": False, "exchange": "xpublic", "messageAgeMax": 0, **props}
        self._stop_requested = False
        self.metrics = {"connected": False, "rxByteCount": 0, "rxGoodCount": 0, "rxBadCount": 0}
        self.metrics |= {"txByteCount": 0, "txGoodCount": 0, "txBadCount": 0}
        self.next_connect_time = time.time()
        self.next_connect_failures = 0

    def metricsConnect(self) -> None:  # noqa: N802
        self.metrics["connected"] = True

    def metricsDisconnect(self) -> None:  # noqa: N802
        self.metrics["connected"] = False

    def metricsReport(self) -> dict[str, Any]:  # noqa: N802
        return self.metrics

    def setEbo(self, start: float) -> None:  # noqa: N802
        self.next_connect_failures += 1
        self.next_connect_time = start + 60

    def splitPick(self, message: Message) -> int:  # noqa: N802
        return sum(message["relPath"].encode("ascii")) % len(self.o["exchange"])


def install(patch: pytest.MonkeyPatch) -> None:
    """Install the fake modules, and unload the driver so that it imports them."""
    modules = {name: ModuleType(name) for name in ("sarracenia", "sarracenia.moth", "sarracenia.postformat")}
    vars(modules["sarracenia"])["nowstr"] = lambda: "20231114T221320.25"
    vars(modules["sarracenia.moth"])["Moth"] = Moth
    vars(modules["sarracenia.postformat"])["PostFormat"] = PostFormat
    for name, module in modules.items():
        patch.setitem(sys.modules, name, module)
    for name in ("signalbox_sr3.driver", "signalbox_sr3.messages"):
        patch.delitem(sys.modules, name, raising=False)
