"""Faults of live."""

from functools import partial

from tests.simulation.planted.mutant import Mutant

DECISIONS, WRITER = "signalbox.live.outbox.decisions", "signalbox.live.outbox.writer"
DISTRIBUTOR, EFFECTS = "signalbox.live.router.distributor", "signalbox.live.session.effect_executor"
NUMBERING, HOLDS = "signalbox.exchange.routing.numbering", "signalbox.exchange.routing.key_holds"
TABLE, STORED_HOLDS = "signalbox.aws.exchange.routing_table", "signalbox.aws.exchange.key_holds"
CONCERNED = "signalbox.live.admin.concerned_sessions"
_mutant, _revocation = partial(Mutant, capability="live"), partial(Mutant, capability="revocation")

MUTANTS = (
    _mutant(
        "an event is as old as its publication",
        module="signalbox.live.log.selection",
        old="event.logged_at >= start.since",
        new="event.at >= start.since",
    ),
    _mutant(
        "a live event precedes the backfill",
        module=DECISIONS,
        old="    if subscription in outbox.pending_backfills:\n        return ItemAction.DEFER\n",
        new="",
    ),
    _mutant(
        "a watermark covers the next event",
        module=DECISIONS,
        old="(event.sequence or 0) <= marks.numbers.get(event.topic, -1)",
        new="(event.sequence or 0) <= marks.numbers.get(event.topic, -2) + 1",
    ),
    _mutant(
        "a batch that was posted in part continues after its next event",
        module=DECISIONS,
        old="return outbox.progress[1] if",
        new="return outbox.progress[1] + 1 if",
    ),
    _mutant(
        "a blocked item is done",
        module=WRITER,
        old="for one in incoming[position:])",
        new="for one in incoming[position + 1 :])",
    ),
    _mutant(
        "an unanswered post is done",
        module="signalbox.live.outbox.delivery",
        old="PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,",
        new="PostResult.UNKNOWN: DeliveryOutcome.DONE,",
    ),
    _mutant(
        "events that reach no outbox are done",
        module=DISTRIBUTOR,
        old="        {message_id for message_id, _ in left}, [one",
        new="        set(), [one",
    ),
    _mutant(
        "new subscribers get nothing",
        module=DISTRIBUTOR,
        old="        self._send(others, realm)\n        return _distribution([*batches, *others])",
        new="        return _distribution(batches)",
    ),
    _mutant(
        "events are not in the log before they are sent",
        module=DISTRIBUTOR,
        old="            self.log.append(exchange.name, [one.event for one in events], live=exchange.live)\n",
        new="            pass\n",
    ),
    _mutant(
        "the past is requested before the subscription is stored",
        module=EFFECTS,
        old="        self.ports.subscribers.stored.attach("
        "self._realm, subscriber, at=at, expires_at=self._expires_at)\n"
        "        if _requests_past(effect):\n"
        "            self._put(BackfillRequest(self._item_id(), pattern, effect.get_retained, effect.history))\n",
        new="        if _requests_past(effect):\n"
        "            self._put(BackfillRequest(self._item_id(), pattern, effect.get_retained, effect.history))\n"
        "            self._flush()\n"
        "        self.ports.subscribers.stored.attach("
        "self._realm, subscriber, at=at, expires_at=self._expires_at)\n",
    ),
    _mutant(
        "a repeated frame has other effects",
        module=EFFECTS,
        old='text = f"{self.cause.frame}:{self._number}"',
        new='text = f"{self.cause.frame}:{self._number}:{id(self)}"',
    ),
    _mutant(
        "frames are done before their effects",
        module="signalbox.live.session.inbox_processor",
        old="            self._execute(decision)\n"
        "            has_begun |= bool(decision.outcome.effects)\n"
        "            if decision.arrival.frame == whole(decision.arrival.frame):\n"
        "                yield decision.arrival.frame\n",
        new="            if decision.arrival.frame == whole(decision.arrival.frame):\n"
        "                yield decision.arrival.frame\n"
        "            self._execute(decision)\n",
    ),
    _mutant(
        "a key is not held for what is not done",
        module=HOLDS,
        old="for one in dict.fromkeys(waiting) if one in left]",
        new="for one in ()]",
    ),
    _mutant(
        "a hold ends after three minutes",
        module=HOLDS,
        old="now + self.retention",
        new="now + timedelta(minutes=3)",
    ),
    _mutant(
        "a key is numbered while others hold it",
        module=NUMBERING,
        old="for key in messages.keys() - held.keys():",
        new="for key in ():",
    ),
    _mutant(
        "a message overtakes one that holds its key",
        module=NUMBERING,
        old="while late := _late(order.unblocked(), held, heads):",
        new="while late := ():",
    ),
    _mutant(
        "heads are stored without the hold of their key",
        module=TABLE,
        old='is_as_read &= attr("held_for").eq(list(hold.replacing)) if hold.replacing else is_free',
        new="del is_free",
    ),
    _mutant(
        "a held key is free",
        module=STORED_HOLDS,
        old="is_free = HELD_UNTIL.not_exists() | HELD_UNTIL.lte(milliseconds(now))",
        new="is_free = HELD_UNTIL.not_exists() | HELD_UNTIL.gt(0)",
    ),
    _mutant(
        "the items of an outbox have no order",
        module="signalbox.aws.live.outbox",
        old='"MessageGroupId": message.connection',
        new='"MessageGroupId": deduplication.hexdigest()',
    ),
    _mutant(
        "the cursor is one ahead",
        module="signalbox.clients.live.cursor",
        old="return AfterSequence(number)",
        new="return AfterSequence(number + 1)",
    ),
    _revocation(
        "a right is not checked at the post",
        module=DECISIONS,
        old=" and rights.may_receive(candidate.event.topic)",
        new="",
    ),
    _revocation(
        "a revocation is not noticed by those who know rights",
        module=CONCERNED,
        old="        self.rights_version.increment()\n        self.clock.sleep(",
        new="        self.clock.sleep(",
    ),
    _revocation(
        "a revocation is answered at once",
        module=CONCERNED,
        old="        self.clock.sleep(RIGHTS_SETTLE_SECONDS)\n",
        new="",
    ),
    _revocation(
        "rights of another version are used",
        module="signalbox.aws.live.cached_rights",
        old="read.version != self.version",
        new="read.version is self.version",
    ),
)
