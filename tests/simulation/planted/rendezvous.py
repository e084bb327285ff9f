"""Faults of rendezvous."""

from tests.simulation.planted.mutant import Mutant

OFFERS, SERVICE = "signalbox.aws.rendezvous.offers", "signalbox.rendezvous.rules.offer_service"
ANSWER, POLL = "signalbox.rendezvous.rules.answer_service", "signalbox.rendezvous.rules.poll_service"
STATES, CLIENT_QUEUES = "signalbox.rendezvous.model.states", "signalbox.aws.rendezvous.queues"
SWEEP = "signalbox.rendezvous.rules.sweep_service"

MUTANTS = (
    Mutant(
        "a claim ignores the match of another proxy",
        "rendezvous",
        OFFERS,
        'attr("deadline").gt(milliseconds(now)) & is_free',
        'attr("deadline").gt(milliseconds(now))',
    ),
    Mutant("a claim that is repeated finds nothing", "rendezvous", OFFERS, " | is_ours", ""),
    Mutant("a claim lasts no time", "rendezvous", POLL, "until=now + self.policy.match_patience", "until=now"),
    Mutant(
        "an expired offer is closed when answered",
        "rendezvous",
        OFFERS,
        "reply=reply, condition=IS_OPEN)",
        "reply=reply, condition=attr('pk').gt(''))",
    ),
    Mutant(
        "an answer replaces a final state",
        "rendezvous",
        OFFERS,
        "condition=is_mine & in_time)",
        "condition=attr('pk').gt(''))",
    ),
    Mutant("an answer of a former match counts", "rendezvous", OFFERS, '& attr("sid").eq(sid)', ""),
    Mutant("a reply is not stored", "rendezvous", OFFERS, ', "reply": packed(reply)', ""),
    Mutant(
        "an answer is not sent again",
        "rendezvous",
        SERVICE,
        "if record.reply and self.client_queues",
        "if not record.reply and self.client_queues",
    ),
    Mutant(
        "a reply is sent at each delivery",
        "rendezvous",
        CLIENT_QUEUES,
        "return not any(int(page",
        "return not all(int(page",
    ),
    Mutant(
        "a time-out is not sent",
        "rendezvous",
        SERVICE,
        "        self.client_queues.send(closed.client_id, reply)\n",
        "",
    ),
    Mutant(
        "an answer is sent before it is stored",
        "rendezvous",
        ANSWER,
        "        record = self.offers.answer(match",
        "        self._send(match, reply)\n        record = self.offers.answer(match",
    ),
    Mutant(
        "an answer deletes the offer and is not sent",
        "rendezvous",
        ANSWER,
        "            self.client_queues.send(record.client_id, reply)\n",
        "            pass\n",
    ),
    Mutant(
        "an answer leaves the offer",
        "rendezvous",
        ANSWER,
        "            self.broker_queue.delete(record.receipt_handle)\n",
        "            pass\n",
    ),
    Mutant(
        "a parked offer is done",
        "rendezvous",
        SERVICE,
        'DeliveryResult(done=False, events=(events.offer(draft, "parked"',
        'DeliveryResult(done=True, events=(events.offer(draft, "parked"',
    ),
    Mutant(
        "a later delivery is done",
        "rendezvous",
        SERVICE,
        "return DeliveryResult(done=False, hidden_until",
        "return DeliveryResult(done=True, hidden_until",
    ),
    Mutant(
        "a parked offer is hidden for an hour",
        "rendezvous",
        STATES,
        "LONGEST_HIDDEN = timedelta(seconds=10)",
        "LONGEST_HIDDEN = timedelta(hours=1)",
    ),
    Mutant(
        "an offer never expires",
        "rendezvous",
        SERVICE,
        "if self.clock.now() >= record.deadline",
        "if self.clock.now() < record.created_at",
    ),
    Mutant("a copy is a new offer", "rendezvous", SERVICE, "        if is_copy(draft, others):", "        if False:"),
    Mutant(
        "a stale read finds the match",
        "rendezvous",
        OFFERS,
        "limit=SOUGHT_PAGE_SIZE)",
        "limit=SOUGHT_PAGE_SIZE, is_consistent=False)",
    ),
    Mutant(
        "the lease ends with the offer",
        "rendezvous",
        SWEEP,
        "EPOCH + MILLISECOND * (self.swept_until.position() or 0), self.parts.now()",
        "EPOCH + MILLISECOND * (self.swept_until.position() or 0), self.parts.now() + MILLISECOND * 140_000",
    ),
    Mutant("the sweep forgets its place", "rendezvous", SWEEP, "// MILLISECOND + 1)", "// MILLISECOND + 10_000_000)"),
    Mutant(
        "strays are deleted without their tags",
        "rendezvous",
        SWEEP,
        "        if not is_ours(",
        "        if False and not is_ours(",
    ),
    Mutant(
        "an answer without a match is accepted",
        "rendezvous",
        OFFERS,
        'if item.get("sid") == sid), None)',
        "if item.get('sid') is not None), None)",
    ),
)
