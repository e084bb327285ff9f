"""Looking at the world of a split, and remembering what is needed to judge it later."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import Registry
from signalbox.splitting.model.control_ports import ControlPorts, temporary_names
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.world import Forwarder, World

STARTED = "forwarding-started"


def observed(ports: ControlPorts, split: Split, registry: Registry, *, now: datetime) -> World:
    """Return the world as it is, and note the samples. Raises `EffectRefused` and `EffectFailed`."""
    found = ports.queues.observe(temporary_names(split), now=now)
    ports.store.samples.note(split.target, {name: sample for name, (_, sample) in found.items()})
    samples = ports.store.samples.of(split.target)
    return World(
        target=ports.targets_of(split.target).observe(split, registry),
        forwarders=_forwarders(ports, split),
        queues={name: replace(queue, samples=samples.get(name, ())) for name, (queue, _) in found.items()},
    )


def note_start(ports: ControlPorts, split: Split, original: QueueName, *, now: datetime) -> None:
    """Note that the forwarding of a queue is started: calls that began before do not count against it any more."""
    ports.store.notes.put(split.target, f"{STARTED}:{original}:{now.isoformat()}", now.isoformat())


def _forwarders(ports: ControlPorts, split: Split) -> dict[QueueName, Forwarder]:
    found = dict(ports.forwarders.observe([queue.original for queue in split.queues]))
    closing = [queue.original for queue in split.queues if split.is_closing(queue.original)]
    notes = ports.store.notes.of(split.target) if closing else {}
    for original in closing:
        since = _last_start(notes, original)
        if since is not None:
            unfinished = ports.store.ledger.unfinished(original, since=since)
            found[original] = replace(found.get(original, Forwarder()), unfinished=unfinished)
    return found


def _last_start(notes: Mapping[str, str], original: QueueName) -> datetime | None:
    prefix = f"{STARTED}:{original}:"
    starts = [datetime.fromisoformat(text) for name, text in notes.items() if name.startswith(prefix)]
    return max(starts, default=None)
