"""Mappings on their way to another queue and back: one of them always reads, however long AWS takes for a step."""

from dataclasses import replace
from itertools import product

import pytest

from signalbox.splitting.consumers.switching import Pair, Reading, Step, combined
from signalbox.splitting.model.world import TargetState

ABSENT, OFF, CHANGING, ON = Reading.ABSENT, Reading.OFF, Reading.CHANGING, Reading.ON
ORIGINAL, MIXED, TEMPORARY = TargetState.ORIGINAL, TargetState.MIXED, TargetState.TEMPORARY
STEADY = [
    Pair(*readings, is_enabled=enabled)
    for *readings, enabled in product((ABSENT, OFF, ON), (ABSENT, OFF, ON), (True, False))
]
RESULTS = {
    Step.CREATE_TEMPORARY: "temporary",
    Step.ENABLE_TEMPORARY: "temporary",
    Step.DISABLE_TEMPORARY: "temporary",
    Step.DELETE_TEMPORARY: "temporary",
    Step.CREATE_ORIGINAL: "original",
    Step.ENABLE_ORIGINAL: "original",
    Step.DISABLE_ORIGINAL: "original",
}


def after(pair: Pair, step: Step) -> Pair:
    made = ON if pair.is_enabled else OFF
    reading = {"create": made, "enable": ON, "disable": OFF, "delete": ABSENT}[step.split()[0]]
    return replace(pair, **{RESULTS[step]: reading})


def on_the_way(pair: Pair, step: Step) -> Pair:
    return replace(pair, **{RESULTS[step]: CHANGING})


def named(pair: Pair) -> str:
    return f"{pair.original}-{pair.temporary}-{'on' if pair.is_enabled else 'off'}"


@pytest.mark.parametrize("pair", STEADY, ids=named)
def test_from_everywhere_a_switch_comes_to_the_temporary_queue(pair: Pair) -> None:
    while pair.step:
        pair = after(pair, pair.step)

    assert pair.state is TEMPORARY


@pytest.mark.parametrize("pair", STEADY, ids=named)
def test_from_everywhere_the_way_back_comes_to_the_original(pair: Pair) -> None:
    while pair.step_back:
        pair = after(pair, pair.step_back)

    assert pair.state is ORIGINAL
    assert pair.temporary is ABSENT


@pytest.mark.parametrize("pair", STEADY, ids=named)
@pytest.mark.parametrize("way", ["step", "step_back"])
def test_no_step_takes_the_only_mapping_that_reads(pair: Pair, way: str) -> None:
    is_read = ON in (pair.original, pair.temporary)
    while step := getattr(pair, way):
        half_done = on_the_way(pair, step)
        pair = after(pair, step)

        assert not is_read or not pair.is_enabled or ON in (half_done.original, half_done.temporary)
        assert half_done.state is TargetState.CHANGING


@pytest.mark.parametrize("pair", [Pair(CHANGING, ABSENT), Pair(ON, CHANGING), Pair(CHANGING, ON)], ids=named)
def test_while_aws_is_at_work_nothing_is_asked_for(pair: Pair) -> None:
    assert (pair.step, pair.step_back) == (None, None)


@pytest.mark.parametrize(
    ("pair", "state"),
    [
        (Pair(ON, ABSENT), ORIGINAL),
        (Pair(ON, ON), MIXED),
        (Pair(OFF, ON), TEMPORARY),
        (Pair(OFF, OFF), MIXED),
        (Pair(OFF, ABSENT), MIXED),
        (Pair(OFF, ABSENT, is_enabled=False), ORIGINAL),
        (Pair(OFF, OFF, is_enabled=False), TEMPORARY),
        (Pair(ABSENT, ON), TEMPORARY),
        (Pair(ABSENT, ABSENT), MIXED),
        (Pair(ABSENT, ON, is_replaced=True), MIXED),
    ],
)
def test_a_pair_says_from_where_the_function_reads(pair: Pair, state: TargetState) -> None:
    assert pair.state is state


@pytest.mark.parametrize("way", ["step", "step_back"])
def test_a_mapping_that_somebody_replaced_is_taken_away(way: str) -> None:
    pair, steps = Pair(ABSENT, ON, is_replaced=True), []

    while step := getattr(pair, way):
        steps.append(step)
        pair = after(pair, step)

    assert steps == [Step.DISABLE_TEMPORARY, Step.DELETE_TEMPORARY]


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
def test_the_states_of_several_places_are_one(states: list[TargetState], expected: TargetState) -> None:
    assert combined(states) is expected
