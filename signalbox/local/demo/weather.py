"""The files of the exchange's demo: weather bulletins, a radar image, and a note that no queue is bound to."""

import struct
import zlib
from datetime import datetime
from pathlib import Path

OBSERVED = ("CYHZ", "CYQB", "CYUL", "CYVR", "CYWG", "CYYZ")
WARNED = ("CYQB", "CYUL")
SIDE = 64
WHITE = 255


def write_weather(folder: Path, *, now: datetime) -> dict[str, bytes]:
    """Write the files into a folder; return their contents by their paths in it."""
    files = _bulletins(f"{now:%d%H%M}") | {"radar/CASBV/rain.png": _image(), "notes/shift.txt": b"Coffee is out.\n"}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return files


def _bulletins(time_group: str) -> dict[str, bytes]:
    texts = {("SA", "SACN31", station): f"METAR {station} {time_group}Z 27012KT 15SM M02/M07=" for station in OBSERVED}
    texts |= {("WW", "WWCN11", station): f"SNOWFALL WARNING FOR {station}: 15 CM BY TONIGHT.=" for station in WARNED}
    return {
        f"bulletins/{kind}/{station}/{heading}_{station}_{time_group}": (
            f"{heading} {station} {time_group}\n{text}\n".encode()
        )
        for (kind, heading, station), text in texts.items()
    }


def _image() -> bytes:
    """Return a PNG of a shower: the signature, the header, the grey values line by line, and the end."""
    middle = SIDE // 2
    lines = (bytes([0, *(min(WHITE, (x - middle) ** 2 + (y - middle) ** 2) for x in range(SIDE))]) for y in range(SIDE))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
