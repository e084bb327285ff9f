"""The messages of the exchange's demo: weather bulletins, a file of a radar, and a note that no queue is bound to."""

import json
from base64 import b64encode
from datetime import datetime
from hashlib import sha512

from signalbox.clients.exchange.publisher import PublishRequest

OBSERVED = ("CYHZ", "CYQB", "CYUL", "CYVR", "CYWG", "CYYZ")
WARNED = ("CYQB", "CYUL")
RADAR = bytes(range(256)) * 4  # of any bytes, so that its message has them in base64


def weather_files(now: datetime) -> dict[str, bytes]:
    """Return the contents of the files by path."""
    return _bulletins(f"{now:%d%H%M}") | {"radar/CASBV/rain.raw": RADAR, "notes/shift.txt": b"Coffee is out.\n"}


def announcement(path: str, content: bytes, *, now: datetime) -> PublishRequest:
    """Return the message in Sarracenia's format v03 that announces a file and contains it."""
    fields = {
        "pubTime": f"{now:%Y%m%dT%H%M%S.%f}",
        "baseUrl": "file:/",
        "relPath": path,
        "size": len(content),
        "identity": {"method": "sha512", "value": _base64(sha512(content).digest())},
        "content": {"encoding": "base64", "value": _base64(content)},
    }
    return PublishRequest(".".join(("v03", *path.split("/")[:-1])), json.dumps(fields))


def _base64(octets: bytes) -> str:
    return b64encode(octets).decode()


def _bulletins(time_group: str) -> dict[str, bytes]:
    texts = {("SA", "SACN31", station): f"METAR {station} {time_group}Z 27012KT 15SM M02/M07=" for station in OBSERVED}
    texts |= {("WW", "WWCN11", station): f"SNOWFALL WARNING FOR {station}: 15 CM BY TONIGHT.=" for station in WARNED}
    return {
        f"bulletins/{kind}/{station}/{heading}_{station}_{time_group}": (
            f"{heading} {station} {time_group}\n{text}\n".encode()
        )
        for (kind, heading, station), text in texts.items()
    }
