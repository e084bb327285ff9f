"""Variables with queue names: switched, restored exactly, and deployments during a split are kept."""

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, SourceKind
from signalbox.splitting.consumers.registry_reader import ALL_VALUES
from signalbox.splitting.consumers.variables import Variables
from signalbox.splitting.model.observed_state import TargetState
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

NAMES = {QueueName("memes"): QueueName("tmp-memes"), QueueName("orders"): QueueName("tmp-orders")}
URL = "https://sqs.us-east-1.amazonaws.com/1/"
MEMES = NameSource(SourceKind.VARIABLE, "MEMES")
ADDED = NameSource(SourceKind.VARIABLE, "ADDED", fallback="orders")
MAP = NameSource(SourceKind.VARIABLE, "MAP", selector=ALL_VALUES)
LIKE = NameSource(SourceKind.VARIABLES_LIKE, "_QUEUE$")
ORIGINAL, MIXED, TEMPORARY = TargetState.ORIGINAL, TargetState.MIXED, TargetState.TEMPORARY


def variables(*sources: NameSource) -> Variables:
    return Variables(Resolver(PlainLanguages(), HOME), sources)


def test_a_switch_changes_names_and_nothing_else() -> None:
    environment = {"MEMES": URL + "memes", "COLOUR": "memes"}

    switched = variables(MEMES).switched(environment, NAMES)

    assert switched == {"MEMES": URL + "tmp-memes", "COLOUR": "memes"}


def test_a_missing_variable_is_added() -> None:
    assert variables(ADDED).switched({}, NAMES) == {"ADDED": "tmp-orders"}


def test_the_changed_values_are_saved_as_they_were() -> None:
    noted = variables(MEMES, ADDED).noted({"MEMES": "memes", "COLOUR": "red"}, NAMES)

    assert noted == {"MEMES": "memes", "ADDED": None}


def test_one_source_after_another_changes_the_same_variable() -> None:
    first = NameSource(SourceKind.VARIABLE, "BOTH", pattern="^(memes)")
    second = NameSource(SourceKind.VARIABLE, "BOTH", pattern="(orders)$")

    assert variables(first, second).switched({"BOTH": "memes,orders"}, NAMES) == {"BOTH": "tmp-memes,tmp-orders"}


@pytest.mark.parametrize(
    ("sources", "environment"),
    [
        pytest.param((MEMES,), {"MEMES": URL + "memes", "COLOUR": "red"}, id="url"),
        pytest.param((ADDED,), {"COLOUR": "red"}, id="added"),
        pytest.param((MAP,), {"MAP": '{"a":"memes",  "b":"orders"}'}, id="JSON with its spaces"),
        pytest.param((LIKE, MEMES), {"A_QUEUE": "orders", "B_QUEUE": "memes", "MEMES": "memes"}, id="several"),
    ],
)
def test_a_switch_and_back_restores_the_environment_exactly(
    sources: tuple[NameSource, ...], environment: dict[str, str]
) -> None:
    known = variables(*sources)

    back = known.restored(known.switched(environment, NAMES), known.noted(environment, NAMES), NAMES)

    assert back == environment


def test_values_deployed_during_a_split_are_kept() -> None:
    known, before = variables(MEMES, ADDED), {"MEMES": "memes"}
    noted = known.noted(before, NAMES)
    deployed = {"MEMES": URL + "tmp-memes", "COLOUR": "red"}

    assert known.restored(deployed, noted, NAMES) == {"MEMES": URL + "memes", "COLOUR": "red"}


def test_an_environment_without_a_switch_stays_unchanged() -> None:
    environment = {"MAP": '{"a":"memes"}', "MEMES": "memes"}

    assert variables(MAP, MEMES).restored(environment, {}, NAMES) == environment


def test_a_removed_variable_is_not_added_by_its_fallback_on_the_way_back() -> None:
    known = variables(ADDED)

    assert known.restored({}, {}, NAMES) == {}


def test_the_environment_before_a_switch_is_the_current_one_with_the_saved_values() -> None:
    environment = {"MEMES": "tmp-memes", "ADDED": "tmp-orders", "COLOUR": "red"}

    before = variables().before(environment, {"MEMES": "memes", "ADDED": None})

    assert before == {"MEMES": "memes", "COLOUR": "red"}


def test_a_switch_without_its_variable_raises() -> None:
    with pytest.raises(UnresolvedQueue, match="no variable 'MEMES'"):
        variables(MEMES).switched({}, NAMES)


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        pytest.param({"MEMES": "memes", "A_QUEUE": "orders"}, ORIGINAL, id="originals"),
        pytest.param({"MEMES": "tmp-memes", "A_QUEUE": "tmp-orders"}, TEMPORARY, id="temporary ones"),
        pytest.param({"MEMES": "memes", "A_QUEUE": "tmp-orders"}, MIXED, id="both"),
        pytest.param({"MEMES": "other", "A_QUEUE": "other"}, ORIGINAL, id="other queues"),
        pytest.param({"MEMES": "tmp-memes"}, MIXED, id="one is gone"),
        pytest.param({}, ORIGINAL, id="all are gone"),
    ],
)
def test_the_names_determine_the_state_of_a_target(environment: dict[str, str], state: TargetState) -> None:
    assert variables(MEMES, LIKE).state(environment, NAMES) is state
