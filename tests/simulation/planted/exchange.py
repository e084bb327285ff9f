"""Faults of the exchange."""

from tests.simulation.planted.mutant import Mutant

TABLE, SEQUENCES = "signalbox.aws.exchange.routing_table", "signalbox.exchange.routing.sequences"
DISPATCHER, COPIES = "signalbox.exchange.routing.copy_dispatcher", "signalbox.exchange.routing.copy_router"
RETRIES, DETOURS = "signalbox.exchange.routing.retries", "signalbox.exchange.routing.detours"
SENDER, FIFO, NUMBERING = "signalbox.aws.shared.queue_sender", "signalbox.fifo", "signalbox.exchange.routing.numbering"

MUTANTS = (
    Mutant(
        "a head is stored without its condition",
        "live",
        TABLE,
        "sequence.eq(change.replacing.sequence) if change",
        "sequence.gte(0) if change",
    ),
    Mutant("a number is left out", "exchange", SEQUENCES, "sequence += 1", "sequence += 1 + (sequence % 7 == 6)"),
    Mutant(
        "a redelivered message gets a new number",
        "exchange",
        SEQUENCES,
        "        if message not in recent:",
        "        if True:",
    ),
    Mutant(
        "one message is remembered",
        "exchange",
        SEQUENCES,
        "KEPT = 20",
        "KEPT = 1",
        # One that was not deleted is received before them, and the numbers from it on are kept.
        allowed="all later messages of the group wait",
    ),
    Mutant("a failed copy starts no detour", "exchange", COPIES, "            detours.start(copy)", "            pass"),
    Mutant(
        "later copies take no detour",
        "exchange",
        DETOURS,
        "        if copy.sequence is None or detour not in self._last:",
        "        if True:",
    ),
    Mutant(
        "a detour ends at its first copy",
        "exchange",
        TABLE,
        "condition=detour.eq(last)",
        "condition=detour.gte(last)",
    ),
    Mutant(
        "a detour is extended after its end",
        "exchange",
        TABLE,
        ", condition=attr(detour).exists()",
        "",
        allowed="later messages of the key take the same way to that queue",
    ),
    Mutant(
        "a detour never ends",
        "exchange",
        RETRIES,
        "            self.heads.end_detour(",
        "            (lambda *_, **__: None)(",
    ),
    Mutant(
        "a failed copy is not retried",
        "exchange",
        COPIES,
        "        self.dispatcher.retry_later([*outcome.failed, *behind], outcome)",
        "        self.dispatcher.retry_later(behind, outcome)",
    ),
    Mutant(
        "copies behind a detour are lost",
        "exchange",
        COPIES,
        "[*outcome.failed, *behind], outcome)",
        "outcome.failed, outcome)",
    ),
    Mutant(
        "a stuck copy is done",
        "exchange",
        COPIES,
        "failed |= {copy.message_id for copy in outcome.stuck}",
        "failed |= set()",
    ),
    Mutant(
        "a retried copy is done when it fails",
        "exchange",
        RETRIES,
        "for copy in (*outcome.failed, *outcome.stuck)}",
        "for copy in outcome.stuck}",
    ),
    Mutant(
        "an unknown outcome counts as sent",
        "exchange",
        DISPATCHER,
        "            return SentBatch([(delivery, None) for delivery in batch.deliveries], problem=str(error))",
        "            return SentBatch([])",
    ),
    Mutant(
        "a passing failure is final",
        "exchange",
        DISPATCHER,
        "            if reason is None:",
        "            if reason is not None:",
    ),
    Mutant(
        "refused entries are forgotten",
        "exchange",
        "signalbox.aws.shared.batch_calls",
        '        failures = answer.get("Failed", [])',
        '        failures = [one for one in answer.get("Failed", []) if one["SenderFault"]]',
    ),
    Mutant(
        "a copy has another deduplication id",
        "exchange",
        "signalbox.exchange.messages.properties",
        "return _fifo(group_of(key), message_id)",
        "return _fifo(group_of(key), message_id + published_id())",
    ),
    Mutant(
        "messages of a group are ready at once",
        "exchange",
        FIFO,
        "if self.is_fifo and (message.message_id in self._failed or blocked & places):",
        "if self.is_fifo and message.message_id in self._failed:",
    ),
    Mutant(
        "those behind a failed message are done",
        "exchange",
        FIFO,
        "left = self._failed | {message.message_id for message, _ in self._waiting}",
        "left = self._failed",
    ),
    Mutant(
        "a conflict of transactions is an error",
        "exchange",
        "signalbox.aws.shared.dynamodb",
        'raise ItemBusy("a concurrent transaction writes to the same record") from',
        'raise KeyError("a concurrent transaction writes to the same record") from',
    ),
    Mutant(
        "unprocessed keys are not read again",
        "live",
        "signalbox.aws.shared.dynamodb",
        '        left = answer["UnprocessedKeys"]\n',
        "        left = {}\n",
    ),
    Mutant(
        "unnumbered messages are done",
        "exchange",
        NUMBERING,
        "                batch.fail(entry.message.message_id)",
        "                pass",
    ),
    Mutant(
        "the failed messages are deleted",
        "exchange",
        "lambdas.exchange.route",
        "return in_flight(routed.not_done)",
        "return in_flight(())",
    ),
    Mutant(
        "a batch with an unknown outcome is deleted",
        "exchange",
        "lambdas.exchange.route",
        "    except ExchangeUnknown:\n",
        "    except UnavailableError:\n        routed = RoutingResult((), ())\n    except ExchangeUnknown:\n",
    ),
)
