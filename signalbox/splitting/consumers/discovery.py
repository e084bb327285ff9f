"""Discovery: a target's registry from its event source mappings, its variables and its role's policies."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from signalbox.errors import RejectedError, UnavailableError
from signalbox.queues import FIFO_SUFFIX, InvalidQueueName, QueueName, parse_queue_name
from signalbox.splitting.consumers.queue_reference import ARN_PARTS, Home, QueueReference
from signalbox.splitting.consumers.registry_file import API_VERSIONS, CLUSTER_ANNOTATION, OLD
from signalbox.splitting.model.target import Target
from signalbox.splitting.queues.names import DEFAULT_PREFIX

RECEIVE = "sqs:receivemessage"
ANY = "*"
NOTE = "signalbox/not-placed"


class NothingDiscovered(RejectedError):
    """Raised when no mapping and no variable of a target names a queue."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts about a target.

    `mapped` are the queues of its event source mappings. `environments` are the variables by container, with the key
    None for a target without containers. `policies` are the policies of its role, or None if they could not be read.
    """

    mapped: tuple[QueueName, ...] = ()
    environments: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)
    policies: Sequence[Mapping[str, object]] | None = None


class TargetIsSplit(UnavailableError):
    """Raised when a target reads temporary queues, so that its own are unknown until its split ends."""


def registry_documents(
    target: Target, evidence: Evidence, home: Home, *, prefix: str = DEFAULT_PREFIX
) -> list[dict[str, object]]:
    """Return the documents of a registry file.

    A variable counts if its value is the URL or ARN of a queue from which the role may receive, as far as the policies
    are known, or the bare name of a queue that the policies name. Queues that only the policies name are listed in the
    metadata. Queues outside of `home` are left out.

    Raises `NothingDiscovered`, and `TargetIsSplit` if a name begins with `prefix`.
    """
    allowed = None if evidence.policies is None else tuple(_receivable(evidence.policies, home))
    seen: set[QueueName] = set()
    found = []
    for container, variables in (evidence.environments or {None: {}}).items():
        own = {name: value for name, value in variables.items() if not _is_foreign(value, home)}
        queues = dict(_queues(evidence.mapped, own, allowed, seen))
        if queues:
            found.append(_document(target, container, queues))
    if any(name.startswith(prefix) for name in seen):
        raise TargetIsSplit(f"{target} is split, and reads temporary queues; discover its queues after the split")
    unplaced = [
        one for one in dict.fromkeys(allowed or ()) if one != ANY and not any(fnmatchcase(q, one) for q in seen)
    ]
    if not found:
        known = f"; its role may receive from {', '.join(unplaced)}" if unplaced else ""
        raise NothingDiscovered(f"no mapping and no variable of {target} names a queue that it consumes{known}")
    if unplaced:
        found[0]["metadata"] = {"name": _name(target, None), "annotations": {NOTE: ", ".join(unplaced)}}
    return found


def _queues(
    mapped: Sequence[QueueName], variables: Mapping[str, str], allowed: Sequence[str] | None, seen: set[QueueName]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each queue that is not in `seen` once; a queue that is described twice could not be split."""
    plain = {
        name: QueueReference(value).queue_name for name, value in sorted(variables.items()) if _is_queue(value, allowed)
    }
    for queue in mapped:
        if queue not in seen:
            seen.add(queue)
            # A local command gets the queue's name in the function's own variable, or in a new one.
            variable = next((name for name, found in plain.items() if found == queue), _new_variable(queue))
            yield queue, _entry({"eventSource": queue, "envVar": variable})
    for name, queue in plain.items():
        if queue not in seen:
            seen.add(queue)
            yield queue, _entry({"envVar": name})
    for name, value in sorted(variables.items()):
        texts = _in_json_map(value)
        inside = {QueueReference(one).queue_name for one in texts}
        if texts and all(_is_queue(one, allowed) for one in texts) and inside.isdisjoint(seen):
            seen |= inside
            yield name, _entry({"envVar": name}) | {"namesFromJsonMap": True}


def _new_variable(queue: QueueName) -> str:
    return re.sub(r"\W", "_", queue.removesuffix(FIFO_SUFFIX), flags=re.ASCII).upper() + "_QUEUE"


def _entry(source: Mapping[str, str]) -> dict[str, object]:
    return {"queueType": "SQS", "nameSource": dict(source)}


def _document(target: Target, container: str | None, queues: Mapping[str, object]) -> dict[str, object]:
    name = target.workload if target.is_on_kubernetes else target.name
    consumer = {"name": name, "workloadType": str(target.kind)} | ({"container": container} if container else {})
    place = {"namespace": target.namespace, "annotations": {CLUSTER_ANNOTATION: target.cluster}}
    return {
        "apiVersion": API_VERSIONS[OLD],
        "kind": OLD,
        "metadata": {"name": _name(target, container)} | (place if target.is_on_kubernetes else {}),
        "spec": {"queues": dict(queues), "consumer": consumer},
    }


def _name(target: Target, container: str | None) -> str:
    words = (target.workload if target.is_on_kubernetes else target.name, *([container] if container else []))
    return "-".join(words).replace("/", "-").replace(":", "-").lower()


def _is_foreign(value: str, home: Home) -> bool:
    return any(QueueReference(one).difference(home) for one in (value, *_in_json_map(value)))


def _is_queue(value: str, allowed: Sequence[str] | None) -> bool:
    """Return whether a value refers to a receivable queue; a bare name must be named by the policies."""
    reference = QueueReference(value)
    name = reference.queue_name
    if not _is_name(name):
        return False
    if name == value:
        return name in (allowed or ())
    return reference.account is not None and (allowed is None or any(fnmatchcase(name, pattern) for pattern in allowed))


def _is_name(name: str) -> bool:
    try:
        parse_queue_name(name.removesuffix(FIFO_SUFFIX))
    except InvalidQueueName:
        return False
    return True


def _in_json_map(value: str) -> list[str]:
    """Return the texts in a JSON object; empty if the value is not a JSON object."""
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return [one for one in document.values() if isinstance(one, str)] if isinstance(document, dict) else []


def _receivable(policies: Sequence[Mapping[str, object]], home: Home) -> Iterator[str]:
    """Yield the queue names and name patterns from which the policies allow to receive."""
    for policy in policies:
        for statement in _listed(policy.get("Statement")):
            if not isinstance(statement, Mapping) or statement.get("Effect") != "Allow":
                continue
            if any(fnmatchcase(RECEIVE, str(action).lower()) for action in _listed(statement.get("Action"))):
                yield from _queue_patterns(_listed(statement.get("Resource")), home)


def _queue_patterns(resources: Sequence[object], home: Home) -> Iterator[str]:
    for resource in map(str, resources):
        parts = resource.split(":", ARN_PARTS - 1)
        if resource == ANY:
            yield ANY
        elif fnmatchcase(f"arn:aws:sqs:{home.region}:{home.account}", ":".join(["arn:aws", *parts[2:-1]])):
            yield parts[-1]


def _listed(value: object) -> Sequence[object]:
    """Return a policy element, which may be one value or a list, as a list."""
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)
