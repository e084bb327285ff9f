"""The commands that explain the numbers of the activity."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

# What the rate of a capability counts.
UNITS: Mapping[str, str] = MappingProxyType(
    {"rendezvous": "clients", "splitting": "messages", "exchange": "messages", "live": "posts", "history": "events"}
)
REPORTS: Mapping[str, str] = MappingProxyType(
    {"rendezvous": "rendezvous", "splitting": "splitting", "exchange": "topics", "live": "delivery"}
)
STATUS: Mapping[str, str] = MappingProxyType(
    {
        "rendezvous": "signalbox rendezvous stats",
        "splitting": "signalbox split status",
        "exchange": "signalbox status",
        "live": "signalbox report delivery",
    }
)
COST = "signalbox report cost"
# The outcomes of the events that count as errors.
OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        "rendezvous": "'stale', 'rejected', 'dead'",
        "splitting": "'dead'",
        "exchange": "'dead'",
        "live": "'refused', 'failed', 'dropped', 'dead'",
    }
)


DEFAULT_STAGE = "signalbox"


def options_of(stage: str | None) -> str:
    """Return the options with which commands use a stage in AWS, or the local stage for None."""
    if stage is None:
        return ""
    return " --aws" if stage == DEFAULT_STAGE else f" --aws --stage {stage}"


def questions(capability: str, since: datetime, *, options: str = "") -> dict[str, str]:
    """Return, for each number of a capability, the command that explains it; `since` is the beginning of the hour.

    The command for `errors` lists ids for `signalbox trace`, and the one for `more` concerns the whole capability. Each
    command ends with the `options` of the stage.
    """
    return {name: f"{command}{options}" for name, command in _commands(capability, since).items()}


def _commands(capability: str, since: datetime) -> dict[str, str]:
    days = f"dt >= '{since:%Y-%m-%d}'"
    if capability == "history":
        newest = _query(f"max(occurred_at) AS newest FROM events_raw WHERE {days}")
        kinds = _query(f"capability, kind, outcome, count(*) AS n FROM events_raw WHERE {days} GROUP BY 1, 2, 3")
        return {"rate": kinds, "backlog": newest, "oldest": newest, "errors": newest, "cost": COST, "more": COST}
    status = STATUS[capability]
    own = f"{days} AND capability = '{capability}' AND outcome IN ({OUTCOMES[capability]})"
    errors = _query(
        f"occurred_at, kind, outcome, reason, message_id FROM events_raw WHERE {own} ORDER BY occurred_at DESC LIMIT 20"
    )
    report = f"signalbox report {REPORTS[capability]}"
    return {"rate": report, "backlog": status, "oldest": status, "errors": errors, "cost": COST, "more": status}


def _query(text: str) -> str:
    return f'signalbox history query "SELECT {text}"'
