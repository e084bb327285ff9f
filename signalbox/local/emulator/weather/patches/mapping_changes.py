"""Patch: event source mappings take seconds to change their state, and refuse further changes meanwhile.

MiniStack changes a mapping at once. Mappings of a stack are left alone: CloudFormation waits until they are enabled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.calls import Call, Wire
from signalbox.local.emulator.weather.errors import MAPPING_IN_USE
from signalbox.local.emulator.weather.mapping_states import MappingStates

LAMBDA = "ministack.services.lambda_svc"
MAPPINGS = f"{LAMBDA}:_esms"
CREATE, GET, LIST = f"{LAMBDA}:_create_esm", f"{LAMBDA}:_get_esm", f"{LAMBDA}:_list_esms"
UPDATE, DELETE = f"{LAMBDA}:_update_esm", f"{LAMBDA}:_delete_esm"
POLLED = f"{LAMBDA}:_iter_all_esms"
RESPONSE, JSON = f"{LAMBDA}:_esm_response", "ministack.core.responses:json_response"

Raw = tuple[int, Mapping[str, str], bytes]
REFUSED = MAPPING_IN_USE.answer(Call("lambda", "", {}, wire=Wire.REST_JSON))


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
            return REFUSED.status, REFUSED.headers, REFUSED.body
        mapping = self._mappings.get(mapping_id)
        was_enabled = bool(mapping and mapping["Enabled"])
        raw: Raw = self._update(mapping_id, data)
        if mapping is None or raw[0] >= 300:  # noqa: PLR2004 - HTTP's statuses of success
            return raw
        self._states.updated(mapping, was_enabled=was_enabled)
        return self._json(self._response(mapping), 202)

    def delete(self, mapping_id: str) -> Raw:
        """Delete a mapping that is not being changed."""
        if self._states.is_changing(mapping_id):
            return REFUSED.status, REFUSED.headers, REFUSED.body
        mapping = self._mappings.get(mapping_id)
        raw: Raw = self._delete(mapping_id)
        if mapping is not None:
            self._states.deleted(mapping)
        return raw

    def polled(self) -> Iterator[tuple[str, str, Any]]:
        """Return the mappings that the poller reads, in their present states."""
        self._states.complete()
        yield from self._polled()


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
