"""Who gets a message: sessions are asked in the order in which they started."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from signalbox.messages import Message
from signalbox.splitting.forwarding.filters import Filter, FilterTooSlow
from signalbox.splitting.model.message import Subject

SessionId = NewType("SessionId", str)

DEPLOYED = "deployed"
"""What the deployed consumer is called where a session could stand; no session has this name."""


class Mode(StrEnum):
    """Whether a session takes the messages that it claims, or gets copies of them."""

    STEAL = "steal"
    MIRROR = "mirror"


class Outcome(StrEnum):
    """What a session's filter said."""

    MATCH = "match"
    NO_MATCH = "no match"
    TOO_SLOW = "too slow"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a session claims of one queue."""

    session: SessionId
    mode: Mode
    filter: Filter


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    """What one session's filter said of a message, and why."""

    session: SessionId
    mode: Mode
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Who gets a message: `owner` is None for the deployed consumer; `copies` are the sessions that mirror it."""

    owner: SessionId | None
    copies: tuple[SessionId, ...]
    verdicts: tuple[SessionVerdict, ...]

    @property
    def too_slow(self) -> tuple[SessionVerdict, ...]:
        """Return the verdicts whose sessions are to be cancelled."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is Outcome.TOO_SLOW)


def decide(message: Message, claims: Iterable[Claim], *, sns: bool = False, ask_all: bool = False) -> Decision:
    """Return who gets a message, given the claims in the order in which the sessions started.

    The first session that steals it owns it; each session that mirrors it gets a copy, whoever owns it. With `ask_all`
    those are asked too that come too late to own it, and the verdicts have those who do not match.
    """
    subject = Subject.of(message, sns=sns)
    owner: SessionId | None = None
    copies: list[SessionId] = []
    verdicts: list[SessionVerdict] = []
    for claim in claims:
        if owner is not None and claim.mode is Mode.STEAL and not ask_all:
            continue
        verdict = _verdict(claim, subject, with_refusal=ask_all)
        if verdict is None:
            continue
        verdicts.append(verdict)
        if verdict.outcome is not Outcome.MATCH:
            continue
        if claim.mode is Mode.MIRROR:
            copies.append(claim.session)
        owner = owner or (claim.session if claim.mode is Mode.STEAL else None)
    return Decision(owner, tuple(copies), tuple(verdicts))


def _verdict(claim: Claim, subject: Subject, *, with_refusal: bool) -> SessionVerdict | None:
    try:
        verdict = claim.filter.verdict(subject)
    except FilterTooSlow as error:
        return SessionVerdict(claim.session, claim.mode, Outcome.TOO_SLOW, str(error))
    if verdict.matches:
        return SessionVerdict(claim.session, claim.mode, Outcome.MATCH, verdict.reason)
    # To write down what most sessions say of most messages takes as long as to ask them.
    return SessionVerdict(claim.session, claim.mode, Outcome.NO_MATCH, verdict.reason) if with_refusal else None
