"""The record of the last complete demo of a stage: an unchanged stage shows it instead of running everything again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from signalbox.local.files import read_json, write_json
from signalbox.verify.report import Row, TrialOutcome

RECORD = "demo.json"


def recorded(folder: Path, local: Mapping[str, Any]) -> tuple[str, Sequence[Row]] | None:
    """Return the time and the rows of the demo of exactly this stage, or None."""
    found = read_json(folder / RECORD)
    if found is None or found["stage"] != _identity(local):
        return None
    return found["at"], [
        Row(capability, what, TrialOutcome.OK, detail=detail) for capability, what, detail in found["rows"]
    ]


def record(folder: Path, local: Mapping[str, Any], rows: Sequence[Row], *, now: datetime) -> None:
    """Write the rows of a complete demo."""
    shown = [[row.capability, row.what, row.detail] for row in rows]
    write_json(folder / RECORD, {"stage": _identity(local), "at": f"{now:%Y-%m-%d %H:%M:%S}", "rows": shown})


def _identity(local: Mapping[str, Any]) -> str:
    """Return a digest of local.json: it changes with the sources, the settings, the stacks and the emulator."""
    return hashlib.sha256(json.dumps(local, sort_keys=True).encode()).hexdigest()
