"""Files as arguments of commands; `-` is standard input."""

import json
import sys
from pathlib import Path

from signalbox.errors import RejectedError


def read_text(path: Path) -> str:
    """Return a file's text."""
    try:
        return (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode()
    except OSError as error:
        raise RejectedError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise RejectedError(f"cannot read {str(path)!r}: {error}") from error


def read_json(path: Path) -> object:
    """Return the JSON document in a file."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{str(path)!r} is not JSON: {error}") from error
