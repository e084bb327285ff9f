"""Outages: the regions whose AWS calls get no response, as the file `outages.json` lists them."""

import re
from pathlib import Path

from signalbox.local.emulator.asgi import Receive, Scope
from signalbox.local.emulator.watched_file import WatchedFile

# The region in the credential scope of a signature: Credential=KEY/DATE/REGION/SERVICE/aws4_request
SIGNED_FOR = re.compile(rb"Credential=[^/]+/\d+/([a-z0-9-]+)/")


class Outages:
    """The regions that are away."""

    def __init__(self, path: Path) -> None:
        self._regions = WatchedFile(path, missing=[])

    def include(self, scope: Scope) -> bool:
        """Return whether a request is signed for a region that is away."""
        away = self._regions.read()
        if not away:
            return False
        header = next((value for name, value in scope["headers"] if name.lower() == b"authorization"), b"")
        signed = SIGNED_FOR.search(header)
        return signed is not None and signed[1].decode() in away


async def no_response(receive: Receive) -> None:
    """Wait until the client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
