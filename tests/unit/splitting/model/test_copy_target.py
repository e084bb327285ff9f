"""Exclusive queues, by `queue_mode` and by the forms of `feature.copy_target` in mirrord (`copy_target.rs`)."""

import pytest

from signalbox.messages import Message
from signalbox.splitting.model.claims import Mode, SessionId
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.session_config import (
    WHOLE_TARGET,
    InvalidSessionConfig,
    QueueId,
    parse_mirrord_file,
    split_queues_of,
)
from tests.unit.splitting.forwarding.languages import PlainLanguages

ANY = FilterInput.of(Message.parse({"Body": "any"}), sns=False)
PLAIN = {"queue_type": "SQS"}
EXCLUSIVE = {"queue_type": "SQS", "queue_mode": "exclusive"}
FILTERED = {"queue_type": "SQS", "message_filter": {"a": "b"}}
MIRROR = {"queue_type": "SQS", "queue_mode": "mirror", "jq_filter": "true"}
SCALED_DOWN = ({"scale_down": True}, {"enabled": True, "scale_down": True, "exclude_containers": ["main"]})
NOT_SCALED_DOWN = (
    None,
    True,
    False,
    {},
    {"enabled": True},
    {"enabled": False, "scale_down": True},
    {"scale_down": False, "exclude_init_containers": []},
)


def file(queues: object, copy_target: object) -> dict[str, object]:
    return {"feature": {"split_queues": queues, "copy_target": copy_target}}


def modes(queues: object, copy_target: object = None) -> dict[str, Mode]:
    config = parse_mirrord_file(file(queues, copy_target), PlainLanguages())
    return {entry.queue_id: entry.mode for entry in config.entries}


def problems(queues: object, copy_target: object = None) -> list[str]:
    with pytest.raises(InvalidSessionConfig) as refusal:
        modes(queues, copy_target)
    return str(refusal.value).splitlines()


def test_an_exclusive_entry_claims_every_message_of_its_queue_and_no_other():
    config = parse_mirrord_file(file({"q": EXCLUSIVE}, None), PlainLanguages())

    claim = config.claim(SessionId("ann"), QueueId("q"))
    assert (claim.mode, claim.filter.verdict(ANY).matches) == (Mode.EXCLUSIVE, True)
    assert claim.filter.verdict(ANY).reason == "queue_mode exclusive: every message"
    assert [config.is_exclusive(QueueId(name)) for name in ("q", "p")] == [True, False]
    assert [config.steals(QueueId(name)) for name in ("q", "p")] == [True, False]


@pytest.mark.parametrize(
    "filters",
    [{"message_filter": {"a": "b"}}, {"message_filter": {}}, {"jq_filter": "true"}, {"filter": {"metadata": "a"}}],
)
def test_a_filter_of_an_exclusive_entry_is_a_problem(filters):
    (name,) = filters

    (problem,) = problems({"q": EXCLUSIVE | filters})

    assert problem.startswith(f"feature.split_queues.q.{name}: is not allowed with queue_mode exclusive")


def test_a_queue_is_listed_with_one_mode():
    entries = [{"queue_id": "q", **EXCLUSIVE}, {"queue_id": "q", **FILTERED}]

    assert problems(entries) == ["feature.split_queues: queue 'q' is listed with queue_mode exclusive and steal"]


@pytest.mark.parametrize("copy_target", SCALED_DOWN)
def test_a_scaled_down_copy_makes_stealing_entries_exclusive(copy_target):
    others = {"kafka": {"queue_type": "Kafka"}}
    queues = {"plain": PLAIN, "steal": PLAIN | {"queue_mode": "steal"}, "mirror": MIRROR} | others

    expected = {"plain": Mode.EXCLUSIVE, "steal": Mode.EXCLUSIVE, "mirror": Mode.MIRROR}
    assert modes(queues, copy_target) == expected
    listed = [{"queue_id": name, **entry} for name, entry in queues.items()]
    assert modes(listed, copy_target) == expected


@pytest.mark.parametrize("copy_target", SCALED_DOWN)
@pytest.mark.parametrize("queues", [None, {}, []])
def test_a_scaled_down_copy_without_queues_takes_all_queues_of_the_target(copy_target, queues):
    assert modes(queues, copy_target) == {"*": Mode.EXCLUSIVE}


@pytest.mark.parametrize("copy_target", NOT_SCALED_DOWN)
def test_another_copy_has_no_effect(copy_target):
    assert modes({"q": FILTERED}, copy_target) == {"q": Mode.STEAL}
    assert problems(None, copy_target) == ["feature.split_queues: is missing or empty, so there is nothing to split"]


def test_a_filter_beside_a_scaled_down_copy_is_a_problem():
    (problem,) = problems({"q": FILTERED}, {"scale_down": True})

    assert "which feature.copy_target.scale_down implies" in problem


@pytest.mark.parametrize(
    ("copy_target", "problem"),
    [
        ("yes", ": expected true, false or an object, not 'yes'"),
        ({"scale": True}, ".scale: unknown field; known here: enabled, scale_down, exclude_containers, "),
        ({"scale_down": 1}, ".scale_down: expected true or false, not 1"),
        ({"enabled": "no", "scale_down": True}, ".enabled: expected true or false, not 'no'"),
    ],
)
def test_a_copy_in_another_form_is_a_problem(copy_target, problem):
    (found,) = problems({"q": FILTERED}, copy_target)

    assert found.startswith(f"feature.copy_target{problem}")


def test_entries_of_the_wrong_type_stay_as_they_are():
    (problem,) = problems({"q": 1}, {"scale_down": True})[:1]

    assert problem == "feature.split_queues.q: expected an object, not 1"
    assert problems("all", {"scale_down": True}) == ["feature.split_queues: expected an object, not 'all'"]


def test_the_queues_of_a_file_name_the_mode_that_its_copy_implies():
    """The record of a session holds these, and nothing else of the file."""
    assert split_queues_of(file({"q": PLAIN}, {"scale_down": True})) == {"q": EXCLUSIVE}
    assert split_queues_of(file(None, {"scale_down": True})) == WHOLE_TARGET
    assert split_queues_of(file({"q": PLAIN}, None)) == {"q": PLAIN}
    assert [split_queues_of(one) for one in ([], {}, {"feature": 1})] == [None] * 3
