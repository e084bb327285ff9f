"""Mapping pairs: one mapping always reads during a switch, however long AWS takes for a step."""

from dataclasses import replace
from itertools import product

import pytest

from signalbox.splitting.consumers.mapping_pair import MappingChange, MappingPair, MappingState
from signalbox.splitting.model.observed_state import TargetState, combined_state

ABSENT, OFF, CHANGING, ON = MappingState.ABSENT, MappingState.OFF, MappingState.CHANGING, MappingState.ON
ORIGINAL, MIXED, TEMPORARY = TargetState.ORIGINAL, TargetState.MIXED, TargetState.TEMPORARY
STEADY = [
    MappingPair(*readings, is_enabled=enabled)
    for *readings, enabled in product((ABSENT, OFF, ON), (ABSENT, OFF, ON), (True, False))
]
RESULTS = {
    MappingChange.CREATE_TEMPORARY: "temporary",
    MappingChange.ENABLE_TEMPORARY: "temporary",
    MappingChange.DISABLE_TEMPORARY: "temporary",
    MappingChange.DELETE_TEMPORARY: "temporary",
    MappingChange.CREATE_ORIGINAL: "original",
    MappingChange.ENABLE_ORIGINAL: "original",
    MappingChange.DISABLE_ORIGINAL: "original",
}


def after(pair: MappingPair, step: MappingChange) -> MappingPair:
    made = ON if pair.is_enabled else OFF
    reading = {"create": made, "enable": ON, "disable": OFF, "delete": ABSENT}[step.split()[0]]
    return replace(pair, **{RESULTS[step]: reading})


def on_the_way(pair: MappingPair, step: MappingChange) -> MappingPair:
    return replace(pair, **{RESULTS[step]: CHANGING})


def named(pair: MappingPair) -> str:
    return f"{pair.original}-{pair.temporary}-{'on' if pair.is_enabled else 'off'}"


@pytest.mark.parametrize("pair", STEADY, ids=named)
def test_a_switch_reaches_the_temporary_queue_from_every_state(pair: MappingPair) -> None:
    while pair.step:
        pair = after(pair, pair.step)

    assert pair.state is TEMPORARY


@pytest.mark.parametrize("pair", STEADY, ids=named)
def test_a_switch_back_reaches_the_original_from_every_state(pair: MappingPair) -> None:
    while pair.step_back:
        pair = after(pair, pair.step_back)

    assert pair.state is ORIGINAL
    assert pair.temporary is ABSENT


@pytest.mark.parametrize("pair", STEADY, ids=named)
@pytest.mark.parametrize("way", ["step", "step_back"])
def test_no_step_disables_the_only_enabled_mapping(pair: MappingPair, way: str) -> None:
    is_read = ON in (pair.original, pair.temporary)
    while step := getattr(pair, way):
        half_done = on_the_way(pair, step)
        pair = after(pair, step)

        assert not is_read or not pair.is_enabled or ON in (half_done.original, half_done.temporary)
        assert half_done.state is TargetState.CHANGING


@pytest.mark.parametrize(
    "pair", [MappingPair(CHANGING, ABSENT), MappingPair(ON, CHANGING), MappingPair(CHANGING, ON)], ids=named
)
def test_no_step_is_due_while_a_mapping_is_changing(pair: MappingPair) -> None:
    assert (pair.step, pair.step_back) == (None, None)


@pytest.mark.parametrize(
    ("pair", "state"),
    [
        (MappingPair(ON, ABSENT), ORIGINAL),
        (MappingPair(ON, ON), MIXED),
        (MappingPair(OFF, ON), TEMPORARY),
        (MappingPair(OFF, OFF), MIXED),
        (MappingPair(OFF, ABSENT), MIXED),
        (MappingPair(OFF, ABSENT, is_enabled=False), ORIGINAL),
        (MappingPair(OFF, OFF, is_enabled=False), TEMPORARY),
        (MappingPair(ABSENT, ON), TEMPORARY),
        (MappingPair(ABSENT, ABSENT), MIXED),
        (MappingPair(ABSENT, ON, is_replaced=True), MIXED),
    ],
)
def test_a_pair_knows_which_queue_the_function_reads(pair: MappingPair, state: TargetState) -> None:
    assert pair.state is state


@pytest.mark.parametrize("way", ["step", "step_back"])
def test_a_replaced_mapping_is_deleted(way: str) -> None:
    pair, steps = MappingPair(ABSENT, ON, is_replaced=True), []

    while step := getattr(pair, way):
        steps.append(step)
        pair = after(pair, step)

    assert steps == [MappingChange.DISABLE_TEMPORARY, MappingChange.DELETE_TEMPORARY]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([ORIGINAL, ORIGINAL], ORIGINAL),
        ([TEMPORARY], TEMPORARY),
        ([ORIGINAL, TEMPORARY], MIXED),
        ([ORIGINAL, TargetState.CHANGING], TargetState.CHANGING),
        ([], ORIGINAL),
    ],
)
def test_several_states_combine_to_one(states: list[TargetState], expected: TargetState) -> None:
    assert combined_state(states) is expected
