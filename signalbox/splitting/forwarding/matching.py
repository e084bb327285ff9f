"""Matching of messages to sessions, in the order in which the sessions started."""

from collections.abc import Iterable

from signalbox.messages import Message
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.model.claims import Claim, Decision, FilterOutcome, Mode, SessionId, SessionVerdict
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.filters import FilterStopped, Verdict
from signalbox.splitting.model.s3_objects import BatchMetadata


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
        if verdict.outcome is not FilterOutcome.MATCH:
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
        return SessionVerdict(claim.session, claim.mode, FilterOutcome.STOPPED, str(error))
    if verdict.matches:
        return SessionVerdict(claim.session, claim.mode, FilterOutcome.MATCH, verdict.reason)
    # Building the refusals takes as long as evaluating the filters.
    return SessionVerdict(claim.session, claim.mode, FilterOutcome.NO_MATCH, verdict.reason) if with_refusal else None


def _asked(claim: Claim, filter_input: FilterInput, budget: FilterBudget | None) -> Verdict:
    if budget is None:
        return claim.filter.verdict(filter_input)
    return budget.verdict(claim.session, claim.filter, filter_input)
