"""Matching of messages to sessions, in the order in which the sessions started."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from signalbox.messages import Message
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.filter_input import FilterInput
from signalbox.splitting.forwarding.filters import Filter, FilterStopped, Verdict
from signalbox.splitting.forwarding.s3_objects import BatchMetadata, Unread

SessionId = NewType("SessionId", str)

DEPLOYED = "deployed"
"""The name of the deployed consumer where a session could be named; no session may have it."""


class Mode(StrEnum):
    """The ownership of claimed messages: the session takes them, takes all of them, or receives copies of them."""

    STEAL = "steal"
    EXCLUSIVE = "exclusive"
    MIRROR = "mirror"


class Outcome(StrEnum):
    """The outcome of a session's filter."""

    MATCH = "match"
    NO_MATCH = "no match"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Claim:
    """A session's claim on one queue."""

    session: SessionId
    mode: Mode
    filter: Filter


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    """The outcome of one session's filter for a message, with the reason."""

    session: SessionId
    mode: Mode
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The routing of a message: its owner, None for the deployed consumer, and the sessions that receive copies.

    `unread` is the reason for which a filter saw no metadata of its S3 object.
    """

    owner: SessionId | None
    copies: tuple[SessionId, ...]
    verdicts: tuple[SessionVerdict, ...]
    unread: Unread | None = None

    @property
    def stopped(self) -> tuple[SessionVerdict, ...]:
        """Return the verdicts whose sessions are to be cancelled."""
        return tuple(verdict for verdict in self.verdicts if verdict.outcome is Outcome.STOPPED)


def decide(
    message: Message,
    claims: Iterable[Claim],
    *,
    sns: bool = False,
    metadata: BatchMetadata | None = None,
    ask_all: bool = False,
    budget: FilterBudget | None = None,
) -> Decision:
    """Return the routing of a message; `claims` are in the order in which the sessions started.

    The first session that steals the message owns it; every session that mirrors it receives a copy, whether it has an
    owner or not. With `ask_all`, sessions that are too late to own it are evaluated too, and the verdicts include
    refusals. `metadata` is that of the message's batch, for a queue of S3 event notifications. Without a
    `budget`, only each request to an engine is limited.
    """
    filter_input = FilterInput.of(message, sns=sns, metadata=metadata)
    owner: SessionId | None = None
    copies: list[SessionId] = []
    verdicts: list[SessionVerdict] = []
    for claim in claims:
        if owner is not None and claim.mode is not Mode.MIRROR and not ask_all:
            continue
        verdict = _verdict(claim, filter_input, budget, with_refusal=ask_all)
        if verdict is None:
            continue
        verdicts.append(verdict)
        if verdict.outcome is not Outcome.MATCH:
            continue
        if claim.mode is Mode.MIRROR:
            copies.append(claim.session)
        owner = owner or (None if claim.mode is Mode.MIRROR else claim.session)
    return Decision(owner, tuple(copies), tuple(verdicts), filter_input.s3.unread if filter_input.s3 else None)


def _verdict(
    claim: Claim, filter_input: FilterInput, budget: FilterBudget | None, *, with_refusal: bool
) -> SessionVerdict | None:
    try:
        verdict = _asked(claim, filter_input, budget)
    except FilterStopped as error:
        return SessionVerdict(claim.session, claim.mode, Outcome.STOPPED, str(error))
    if verdict.matches:
        return SessionVerdict(claim.session, claim.mode, Outcome.MATCH, verdict.reason)
    # Building the refusals takes as long as evaluating the filters.
    return SessionVerdict(claim.session, claim.mode, Outcome.NO_MATCH, verdict.reason) if with_refusal else None


def _asked(claim: Claim, filter_input: FilterInput, budget: FilterBudget | None) -> Verdict:
    if budget is None:
        return claim.filter.verdict(filter_input)
    return budget.verdict(claim.session, claim.filter, filter_input)
