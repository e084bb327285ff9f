"""The limit of switches: how often a workload that another manager sets back is switched again."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

PREFIX = "switched:"  # of the names of annotations, before the time of a switch
MAXIMUM_SWITCHES = 5
PERIOD = timedelta(minutes=10)


def switch_annotation(now: datetime) -> str:
    """Return the name of the annotation for a switch."""
    return PREFIX + now.isoformat()


def is_limit_reached(annotations: Mapping[str, str], now: datetime) -> bool:
    """Return whether a workload was switched too often in the last ten minutes."""
    return len(list(_since(annotations, now - PERIOD))) >= MAXIMUM_SWITCHES


def outdated(annotations: Mapping[str, str], now: datetime) -> list[str]:
    """Return the names of the annotations that do not count any more."""
    recent = set(_since(annotations, now - PERIOD))
    return [name for name in annotations if name.startswith(PREFIX) and name not in recent]


def _since(annotations: Iterable[str], moment: datetime) -> Iterable[str]:
    names = (name for name in annotations if name.startswith(PREFIX))
    return (name for name in names if datetime.fromisoformat(name.removeprefix(PREFIX)) > moment)
