"""The demo of live: the log of a running container is written and followed in the realm of the live page."""

import re
import secrets
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from signalbox.clients.deployment import require_local
from signalbox.clients.live.session import Login
from signalbox.flows.live import CAPABILITY, follow_log, live_client
from signalbox.flows.trial import Trial, expect
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

WRITER, READER = "live-source", "live-subscriber"
TIMEOUT_SECONDS = 60.0


def show_live(trial: Trial) -> None:
    """Write a log, and follow it by its prefix as the page does."""
    deployment = require_local(trial.deployment)
    container = f"trial.container.zzzzz-dz642-{secrets.token_hex(8)[:15]}"
    writer, reader = (Login(deployment.realm, name, deployment.tickets[name]) for name in (WRITER, READER))
    with live_client(trial, reader) as client:
        pattern = TopicPattern(MatchPolicy.PREFIX, f"{container}.log.")
        follow_log(trial, f"{container}.log.stdout", pattern=pattern, writer=writer, reader=client)
    with trial.journal.step(CAPABILITY, "the page shows the log") as timing:
        url = f"{deployment.endpoint_url}/live/"
        log = f"{url}#/log/{quote(f'{container}.log.*', safe='')}"
        timing.detail = f"{_title(url)!r} at {log}; sign in as {READER}, with its ticket in local.json"


def _title(url: str) -> str:
    with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        page: Any = answer.read().decode()
    found = re.search(r"<title>(.*?)</title>", page)
    expect(found, f"{url} has no title")
    return str(found and found.group(1))
