"""Planted single faults, of which the simulation must find nearly all: `python -m tests.simulation.mutants`.

Each is one replacement in one module of the product, which is made while that module is loaded. Results are kept in
`.signalbox/reports/mutants.jsonl`, and a run continues with the mutants that have none.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

RESULTS = Path(".signalbox/reports/mutants.jsonl")
SECONDS = 120
VARIABLE = "SIGNALBOX_MUTANT"


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a module that occurs once, and what replaces it. The simulation of `capability` finds it."""

    name: str
    capability: str
    module: str
    old: str
    new: str


OFFERS, SERVICE = "signalbox.aws.rendezvous.offers", "signalbox.rendezvous.rules.offer_service"
ANSWER, POLL = "signalbox.rendezvous.rules.answer_service", "signalbox.rendezvous.rules.poll_service"
STATES, CLIENT_QUEUES = "signalbox.rendezvous.model.states", "signalbox.aws.rendezvous.queues"
SWEEP = "signalbox.rendezvous.rules.sweep_service"
TABLE, SEQUENCES = "signalbox.aws.exchange.routing_table", "signalbox.exchange.routing.sequences"
DISPATCHER, COPIES = "signalbox.exchange.routing.copy_dispatcher", "signalbox.exchange.routing.copy_router"
RETRIES, DETOURS = "signalbox.exchange.routing.retries", "signalbox.exchange.routing.detours"
SENDER, FIFO, NUMBERING = "signalbox.aws.shared.queue_sender", "signalbox.fifo", "signalbox.exchange.routing.numbering"

RENDEZVOUS_MUTANTS = (
    Mutant(
        "a claim ignores the match of another proxy",
        "rendezvous",
        OFFERS,
        '& Attr("available_at").lte(milliseconds(now))',
        "",
    ),
    Mutant("a claim lasts no time", "rendezvous", POLL, "until=now + self.policy.match_patience", "until=now"),
    Mutant(
        "an expired offer is closed when answered",
        "rendezvous",
        OFFERS,
        "condition=is_open)",
        "condition=Attr('pk').gt(''))",
    ),
    Mutant(
        "an answer replaces a final state",
        "rendezvous",
        OFFERS,
        "condition=is_mine & in_time)",
        "condition=Attr('pk').gt(''))",
    ),
    Mutant("an answer of a former match counts", "rendezvous", OFFERS, '& Attr("sid").eq(sid)', ""),
    Mutant("a reply is not stored", "rendezvous", OFFERS, '"reply": packed(reply)})', "})"),
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
        STATES,
        "OfferStep.EXPIRE if now >= record.deadline",
        "OfferStep.EXPIRE if now < record.created_at",
    ),
    Mutant("a copy is a new offer", "rendezvous", SERVICE, "        if is_copy(draft, others):", "        if False:"),
    Mutant(
        "a stale read finds the match",
        "rendezvous",
        OFFERS,
        "limit=SOUGHT_PAGE_SIZE, ConsistentRead=True",
        "limit=SOUGHT_PAGE_SIZE",
    ),
    Mutant(
        "the lease ends with the offer",
        "rendezvous",
        SWEEP,
        "EPOCH + MILLISECOND * (self.swept_until.position() or 0), self.clock.now()",
        "EPOCH + MILLISECOND * (self.swept_until.position() or 0), self.clock.now() + MILLISECOND * 140_000",
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

EXCHANGE_MUTANTS = (
    Mutant(
        "a head is stored without its condition",
        "exchange",
        TABLE,
        '"#sequence = :replaced" if change',
        '"#sequence >= :replaced OR :replaced > #sequence" if change',
    ),
    Mutant("a number is left out", "exchange", SEQUENCES, "sequence += 1", "sequence += 1 + (sequence % 7 == 6)"),
    Mutant(
        "a redelivered message gets a new number",
        "exchange",
        SEQUENCES,
        "        if message not in recent:",
        "        if True:",
    ),
    Mutant("one message is remembered", "exchange", SEQUENCES, "KEPT = 20", "KEPT = 1"),
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
        'ConditionExpression="#detour = :last"',
        'ConditionExpression="#detour >= :last"',
    ),
    Mutant(
        "a detour is extended after its end",
        "exchange",
        TABLE,
        '                ConditionExpression="attribute_exists(#detour)",\n',
        "",
    ),
    Mutant(
        "a detour never ends",
        "exchange",
        RETRIES,
        "                self.heads.end_detour(",
        "                (lambda *_, **__: None)(",
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
        "failed |= kept.failed | {copy.message_id for copy in outcome.stuck}",
        "failed |= kept.failed",
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
        "            return SentBatch([(delivery, None) for delivery in batch.deliveries])",
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
        "exchange",
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
LIVE_MUTANTS = (
    Mutant(
        "an event is as old as its publication",
        "live",
        "signalbox.live.log.selection",
        "event.logged_at >= start.since",
        "event.at >= start.since",
    ),
)
MUTANTS = (*RENDEZVOUS_MUTANTS, *EXCHANGE_MUTANTS, *LIVE_MUTANTS)


class _Planter(MetaPathFinder):
    """The finder of the one module that is changed."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.mutant.module:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None, name
        assert spec.origin is not None, name
        spec.loader = _Changed(name, spec.origin, self.mutant)
        return spec


class _Changed(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, name: str) -> CodeType:
        return compile(changed(self.mutant), self.path, "exec", dont_inherit=True)


def changed(mutant: Mutant) -> str:
    """Return the source of a mutant's module with its fault."""
    source = Path(mutant.module.replace(".", "/") + ".py").read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"{mutant.name}: its text occurs {source.count(mutant.old)} times"
    return source.replace(mutant.old, mutant.new)


def plant() -> None:
    """Plant the fault that the environment names, before the product is imported."""
    name = os.environ.get(VARIABLE)
    if name:
        (mutant,) = (one for one in MUTANTS if one.name == name)
        sys.meta_path.insert(0, _Planter(mutant))


def main() -> None:
    """Run the mutants without results, and print how many are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", help="the capability; none: all")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the processor time for each")
    options = parser.parse_args()
    known = results()
    for mutant in MUTANTS:
        if mutant.name not in known and options.of in (None, mutant.capability):
            known[mutant.name] = _kept(mutant, options.seconds)
            print(f"{'found' if known[mutant.name]['found'] else 'NOT FOUND'}: {mutant.name}", flush=True)
    found = sum(bool(one["found"]) for one in known.values())
    print(f"{found} of {len(known)} mutants are found")


def results() -> dict[str, dict[str, object]]:
    """Return the results that are kept, by the mutants' names."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {one["name"]: one for one in map(json.loads, lines)}


def _kept(mutant: Mutant, seconds: float) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.simulation", "--of", mutant.capability, "--until-broken"]
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, "--seconds", str(seconds)],
        env=os.environ | {VARIABLE: mutant.name},
        capture_output=True,
        text=True,
        check=False,
    )
    result: dict[str, object] = {"name": mutant.name, "found": done.returncode == 1, "output": done.stdout[-600:]}
    if done.returncode not in (0, 1):
        result["error"] = done.stderr[-600:]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
