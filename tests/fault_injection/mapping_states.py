"""Rule: an event source mapping takes seconds to change its state, and cannot be changed in between.

MiniStack changes a mapping at once. Mappings of a stack are left alone: CloudFormation waits until they are enabled.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection.calls import Clock, ServiceCall, Wire
from tests.fault_injection.errors import MAPPED_QUEUE_MISSING, MAPPING_IN_USE, ServiceError

LAMBDA = "ministack.services.lambda_svc"
MAPPINGS = f"{LAMBDA}:_esms"
CREATE, GET, LIST = f"{LAMBDA}:_create_esm", f"{LAMBDA}:_get_esm", f"{LAMBDA}:_list_esms"
UPDATE, DELETE = f"{LAMBDA}:_update_esm", f"{LAMBDA}:_delete_esm"
POLLED = f"{LAMBDA}:_iter_all_esms"
RESPONSE, JSON = f"{LAMBDA}:_esm_response", "ministack.core.responses:json_response"

MAPPING_SECONDS = 3.0

EventSource = MutableMapping[str, Any]
"""A mapping as MiniStack keeps it; its poller reads `Enabled`."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a mapping that is not complete."""

    mapping: EventSource
    state: str
    """The state after the change."""
    due: float


@dataclass(slots=True)
class MappingStates:
    """The changes of mappings that are not complete, by the mappings' ids."""

    clock: Clock
    is_new: Callable[[str], bool]
    """Whether a queue was created so recently that Lambda does not find it."""
    _changes: dict[str, Change] = field(default_factory=dict)

    def is_changing(self, mapping_id: str) -> bool:
        """Return whether a change of the mapping is not complete."""
        self.complete()
        return mapping_id in self._changes

    def created(self, mapping: EventSource) -> None:
        """Begin the life of a mapping, which polls when it is enabled."""
        state, mapping["Enabled"] = mapping["State"], False
        self._begin(mapping, "Creating", state)

    def updated(self, mapping: EventSource, *, was_enabled: bool) -> None:
        """Begin a change that MiniStack made at once; polling changes when the change is complete."""
        state = mapping["State"]
        is_enabled, mapping["Enabled"] = mapping["Enabled"], was_enabled
        meanwhile = "Updating" if is_enabled == was_enabled else "Enabling" if is_enabled else "Disabling"
        self._begin(mapping, meanwhile, state)

    def deleted(self, mapping: EventSource) -> None:
        """Begin the deletion of a mapping, which still polls."""
        self._begin(mapping, "Deleting", "Deleted")

    def complete(self) -> None:
        """Complete the changes that are due."""
        now = self.clock()
        for mapping_id, change in list(self._changes.items()):
            if change.due <= now and self._changes.pop(mapping_id, None) is not None:
                change.mapping["State"] = change.state
                change.mapping["Enabled"] = change.state == "Enabled"

    def leaving(self, mapping_id: str) -> EventSource | None:
        """Return a mapping that is being deleted."""
        self.complete()
        change = self._changes.get(mapping_id)
        return change.mapping if change is not None and change.state == "Deleted" else None

    def _begin(self, mapping: EventSource, meanwhile: str, state: str) -> None:
        mapping["State"] = meanwhile
        self._changes[mapping["UUID"]] = Change(mapping, state, self.clock() + MAPPING_SECONDS)


Raw = tuple[int, Mapping[str, str], bytes]


class MappingCalls:
    """MiniStack's operations of event source mappings with the states between."""

    def __init__(self, states: MappingStates) -> None:
        self._states = states
        self._create, self._get, self._list = original(CREATE), original(GET), original(LIST)
        self._update, self._delete, self._polled = original(UPDATE), original(DELETE), original(POLLED)
        self._mappings: Mapping[str, Any] = original(MAPPINGS)
        self._response: Callable[[Any], Any] = original(RESPONSE)
        self._json: Callable[..., Raw] = original(JSON)

    def create(self, data: Mapping[str, Any]) -> Raw:
        """Create a mapping, which begins to poll later."""
        if self._states.is_new(str(data.get("EventSourceArn", "")).rpartition(":")[2]):
            return _raw(MAPPED_QUEUE_MISSING)
        before = set(self._mappings.keys())
        raw: Raw = self._create(data)
        for mapping_id in set(self._mappings.keys()) - before:
            self._states.created(self._mappings[mapping_id])
            return self._json(self._response(self._mappings[mapping_id]), 202)
        return raw

    def get(self, mapping_id: str) -> Raw:
        """Return a mapping, also one that is being deleted."""
        leaving = self._states.leaving(mapping_id)
        if leaving is not None:
            return self._json(self._response(leaving))
        raw: Raw = self._get(mapping_id)
        return raw

    def list(self, query: Mapping[str, Any]) -> Raw:
        """List mappings in their present states; those that are being deleted are found by their ids only."""
        self._states.complete()
        raw: Raw = self._list(query)
        return raw

    def update(self, mapping_id: str, data: Mapping[str, Any]) -> Raw:
        """Change a mapping that is not being changed."""
        if self._states.is_changing(mapping_id):
            return _raw(MAPPING_IN_USE)
        mapping = self._mappings.get(mapping_id)
        was_enabled = bool(mapping and mapping["Enabled"])
        raw: Raw = self._update(mapping_id, data)
        if mapping is None or raw[0] >= 300:
            return raw
        self._states.updated(mapping, was_enabled=was_enabled)
        return self._json(self._response(mapping), 202)

    def delete(self, mapping_id: str) -> Raw:
        """Delete a mapping that is not being changed."""
        if self._states.is_changing(mapping_id):
            return _raw(MAPPING_IN_USE)
        mapping = self._mappings.get(mapping_id)
        raw: Raw = self._delete(mapping_id)
        if mapping is not None:
            self._states.deleted(mapping)
        return raw

    def polled(self) -> Iterator[tuple[str, str, Any]]:
        """Return the mappings that the poller reads, in their present states."""
        self._states.complete()
        yield from self._polled()


def _raw(error: ServiceError) -> Raw:
    answer = error.answer(ServiceCall("lambda", "", {}, wire=Wire.REST_JSON))
    return answer.status, answer.headers, answer.body


def patch(states: MappingStates) -> Patch:
    """Return the patch for these states."""

    def replacements() -> Mapping[str, object]:
        calls = MappingCalls(states)
        return {
            CREATE: calls.create,
            GET: calls.get,
            LIST: calls.list,
            UPDATE: calls.update,
            DELETE: calls.delete,
            POLLED: calls.polled,
        }

    return Patch(
        sources={
            CREATE: "d351521bb6cdd30f",
            GET: "5525c61b1cc1d3e5",
            LIST: "d8d05c147b2243e3",
            UPDATE: "1b7e0409cb6593c2",
            DELETE: "23854a6afd650e05",
            POLLED: "7db06c0627a59696",
            RESPONSE: "342077ea51fb7b0b",
            JSON: "e6a4da6038be24fa",
        },
        replacements=replacements,
    )
