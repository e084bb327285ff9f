"""Faults of splitting."""

from functools import partial

from tests.simulation.planted.mutant import Mutant

RECONCILE, RETURNS = "signalbox.splitting.control.reconcile", "signalbox.splitting.control.returned_messages"
SENDER, LOCKS = "signalbox.splitting.forwarding.batch_sender", "signalbox.aws.splitting.locks"
DELIVERIES, USES = "signalbox.splitting.forwarding.deliveries", "signalbox.splitting.forwarding.use_recorder"
_mutant = partial(Mutant, capability="splitting")

MUTANTS = (
    _mutant(
        "an unsent message is done",
        module=SENDER,
        old="            if reason is None:\n                work.batch.fail(delivery.message.message_id)\n",
        new="            if reason is None:\n                pass\n",
    ),
    _mutant(
        "a call without an outcome counts as sent",
        module=SENDER,
        old="            work.is_certain = False\n            sent = _unsent(call)",
        new="            sent = SentBatch([])",
    ),
    _mutant(
        "messages are sent to closed queues",
        module=SENDER,
        old="if self.uses.is_open(call.destination) else _unsent(call)",
        new="if True else _unsent(call)",
    ),
    _mutant(
        "messages that were not returned are deleted",
        module=RETURNS,
        old="for message, handle in received if message.message_id not in undone]",
        new="for message, handle in received]",
    ),
    _mutant(
        "returned messages stay",
        module=RETURNS,
        old="            self.queues.remove(self.name, done)\n",
        new="            pass\n",
    ),
    _mutant(
        "each attempt to return a message has another id",
        module=DELIVERIES,
        old='text = f"returned:{message.deduplication_id}:{message.message_id}"',
        new='text = f"returned:{message.deduplication_id}:{id(request)}"',
    ),
    _mutant(
        "a returned message is a duplicate of itself",
        module=DELIVERIES,
        old='request["MessageDeduplicationId"] = hashlib.sha256(text.encode()).hexdigest()',
        new='request["MessageDeduplicationId"] = message.deduplication_id or text',
    ),
    _mutant(
        "a temporary queue is deleted with its messages",
        module=RECONCILE,
        old="        if not is_used or self.is_empty(name, since):\n",
        new="        if True:\n",
    ),
    _mutant(
        "the consumer is not switched back",
        module=RECONCILE,
        old="            yield SwitchTargetBack()\n",
        new="            yield MoveSplit(Stage.CLEANING)\n",
    ),
    _mutant(
        "a session is forgotten before its queues",
        module=RECONCILE,
        old="        if not self.is_any_there(session.queues.values()):\n",
        new="        if True:\n",
    ),
    _mutant(
        "a silent session lasts for days",
        module=RECONCILE,
        old="> self.timings.heartbeat:",
        new="> 1000 * self.timings.heartbeat:",
    ),
    _mutant(
        "a split is drained while its queues have messages",
        module=RECONCILE,
        old="        if self.has_drained():\n",
        new="        if True:\n",
    ),
    _mutant(
        "a session's queue closes at once",
        module=RECONCILE,
        old="        elif use is not None and (use.until is None or not queue.is_fifo):\n",
        new="        elif use is not None:\n",
    ),
    _mutant(
        "a use is not recorded",
        module=USES,
        old="        is_open = self.uses.extend(name, until=now + USE_LASTS)\n",
        new="        is_open = True\n",
    ),
    _mutant(
        "a closed queue is open",
        module=LOCKS,
        old="        return not self._of(name).is_closed\n",
        new="        return True\n",
    ),
    _mutant(
        "a record replaces that of another function",
        module="signalbox.aws.splitting.splits",
        old='attr("version").eq(replacing.version)',
        new='attr("version").gte(0)',
    ),
    _mutant(
        "a lock is free for all",
        module=LOCKS,
        old='attr("until").lte(milliseconds(now)) | attr("holder").eq(holder)',
        new='attr("until").gt(0)',
    ),
    _mutant(
        "a record is a minute old",
        module="signalbox.splitting.forwarding.decider",
        old="RECORD_AGE = timedelta(seconds=2)",
        new="RECORD_AGE = timedelta(seconds=90)",
    ),
    _mutant(
        "an unfinished call is unknown",
        module=LOCKS,
        old="        self.table.write(Put(_call_key(original, call_id) | times))\n",
        new="        del times\n",
    ),
)
