"""An event source mapping takes three seconds to change its state, and polls as it did until then."""

from typing import Any

import pytest

from tests.fakes.clock import Seconds
from tests.fault_injection.mapping_states import MappingStates


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def mapping(*, enabled: bool = True) -> dict[str, Any]:
    return {"UUID": "1", "Enabled": enabled, "State": "Enabled" if enabled else "Disabled"}


def life(states: MappingStates, clock: Seconds, mapping: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the state of a mapping and whether it polls, now and after three seconds."""
    seen = [(mapping["State"], mapping["Enabled"])]
    clock.now += 2.9
    assert states.is_changing("1")
    clock.now += 0.1
    assert not states.is_changing("1")
    return [*seen, (mapping["State"], mapping["Enabled"])]


def test_a_mapping_that_is_created_disabled_never_polls(clock):
    states, made = MappingStates(clock, lambda _queue: False), mapping(enabled=False)
    states.created(made)

    assert life(states, clock, made) == [("Creating", False), ("Disabled", False)]


@pytest.mark.parametrize(
    ("before", "after", "meanwhile"), [(False, True, "Enabling"), (True, False, "Disabling"), (True, True, "Updating")]
)
def test_a_changed_mapping_polls_as_before_until_the_change_is_complete(clock, before, after, meanwhile):
    states, changed = MappingStates(clock, lambda _queue: False), mapping(enabled=after)
    states.updated(changed, was_enabled=before)

    assert life(states, clock, changed) == [
        (meanwhile, before),
        ("Enabled" if after else "Disabled", after),
    ]


def test_only_changing_mappings_are_leaving_or_changing(clock):
    states = MappingStates(clock, lambda _queue: False)
    states.created(mapping())

    assert states.leaving("1") is None
    assert not states.is_changing("2")
