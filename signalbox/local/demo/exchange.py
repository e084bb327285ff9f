"""The demo of the exchange: the flow of weather files with a user of its own, and its history."""

import secrets

from signalbox.flows.exchange import (
    CAPABILITY,
    COPIES,
    UNROUTED,
    WeatherNames,
    delete_declared,
    events_in_lake,
    exchange_user,
    route_weather,
)
from signalbox.flows.trial import Trial
from signalbox.sarracenia.rights.names import parse_user_name, source_exchange
from signalbox.sarracenia.rights.permissions import Role

USER = parse_user_name("demo-pump")
MARK = f"_{USER}_"  # in the names of the demo's own
HISTORY_SECONDS = 60.0


def show_exchange(trial: Trial) -> None:
    """Route files, wait for their events, and delete everything, also that of an interrupted demo."""
    # With a new name each time: the counters of a deleted exchange remain for a while.
    exchange = source_exchange(USER, suffix=secrets.token_hex(3))
    with exchange_user(trial.deployment, USER, Role.SOURCE) as client:
        delete_declared(client, MARK)
        route_weather(trial, client, WeatherNames(exchange, f"q{MARK}bulletins", f"q{MARK}alerts"))
        if "history" in trial.deployment.capabilities:
            _show_events(trial)
        with trial.journal.step(CAPABILITY, "all of it is deleted") as timing:
            delete_declared(client, MARK)
            timing.detail = "user, exchange and queues"


def _show_events(trial: Trial) -> None:
    with trial.journal.step(CAPABILITY, "the history has all events") as timing:
        found = trial.wait_until(lambda: _history(trial), "all events are in the lake", seconds=HISTORY_SECONDS)
        timing.detail = ", ".join(f"{what}: {count}" for what, count in found.items())


def _history(trial: Trial) -> dict[str, int]:
    """Return the counts of the messages' events in the history by kind and outcome, or nothing if some are missing."""
    found = events_in_lake(trial.deployment, trial.published)
    return found if sum(found.values()) == COPIES + UNROUTED else {}
