"""Decompression of Snappy's raw format, in which Firehose wrote Parquet before it wrote gzip.

Source: https://github.com/google/snappy/blob/main/format_description.txt
"""

from signalbox.history.parquet.errors import UnreadableParquet
from signalbox.history.parquet.thrift import ThriftReader

LITERAL, SHORT_COPY, COPY = range(3)
LONG_LITERAL = 60  # from this value on, the length follows in 1 to 4 bytes


def decompressed(data: bytes) -> bytes:
    """Return the decompressed bytes. Raises `UnreadableParquet`."""
    header = ThriftReader(data)
    size, position = header.number(), header.position  # the same variable length as Thrift's
    out = bytearray()
    while position < len(data):
        tag = data[position]
        position += 1
        if tag & 3 == LITERAL:
            length, position = _literal(data, tag >> 2, position)
            out += data[position : position + length]
            position += length
        else:
            length, offset, position = _copy(data, tag, position)
            _repeat(out, length, offset)
    if len(out) != size:
        raise UnreadableParquet(f"Snappy data has {len(out)} bytes instead of {size}")
    return bytes(out)


def _literal(data: bytes, length: int, position: int) -> tuple[int, int]:
    if length < LONG_LITERAL:
        return length + 1, position
    end = position + length - LONG_LITERAL + 1
    return int.from_bytes(data[position:end], "little") + 1, end


def _copy(data: bytes, tag: int, position: int) -> tuple[int, int, int]:
    if tag & 3 == SHORT_COPY:
        return 4 + (tag >> 2 & 7), (tag >> 5) << 8 | data[position], position + 1
    end = position + (2 if tag & 3 == COPY else 4)
    return 1 + (tag >> 2), int.from_bytes(data[position:end], "little"), end


def _repeat(out: bytearray, length: int, offset: int) -> None:
    if not 0 < offset <= len(out):
        raise UnreadableParquet(f"Snappy data refers {offset} bytes back, after {len(out)} bytes")
    start = len(out) - offset
    piece = out[start : start + length]
    # A copy may reach into its own output, which repeats the piece.
    out += (piece * (length // len(piece) + 1))[:length]
