"""`feature.split_queues` as mirrord's users write it; each case cites where mirrord says so."""

import pytest

from signalbox.messages import Message
from signalbox.splitting.model.claims import Mode, SessionId
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.session_config import InvalidSessionConfig, QueueId, SessionConfig, parse_mirrord_file
from tests.unit.splitting.forwarding.languages import PlainLanguages

ANN = SessionId("ann")


def config(queues: object) -> SessionConfig:
    return parse_mirrord_file({"operator": True, "feature": {"split_queues": queues}}, PlainLanguages())


def problems(queues: object) -> list[str]:
    with pytest.raises(InvalidSessionConfig) as refusal:
        config(queues)
    return [line.removeprefix("feature.split_queues") for line in str(refusal.value).splitlines()]


def matches(queues: object, queue_id: str = "q", body: str = "mine", **attributes: str) -> bool:
    found = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    message = Message.parse({"Body": body, "MessageAttributes": found})
    return config(queues).claim(ANN, QueueId(queue_id)).filter.verdict(FilterInput.of(message, sns=False)).matches


def sqs(**entry: object) -> dict[str, object]:
    return {"queue_type": "SQS", **entry}


@pytest.mark.parametrize("text", ["^{{ key }}$", '{{get_env(name="A")}}', "{% if key %}a{% endif %}"])
def test_a_template_is_never_taken_literally(text):
    """mirrord renders its whole configuration before it reads it."""
    expected = (
        ": has a template that is not rendered: `signalbox split` renders a file, and {{ key }} only if it has a key"
    )

    for queues in ({"q": sqs(message_filter={"who": text})}, [{"queue_id": text, **sqs(message_filter={"a": "b"})}]):
        assert problems(queues)[0].startswith(expected)


def test_braces_without_a_template_are_part_of_a_filter():
    assert matches({"q": sqs(message_filter={"who": "^a{1,2}}{3}$"})}, who="a}}}")


def test_the_map_and_the_list_form_are_equal():
    """split_queues.rs, deserialize_legacy_map_form and deserialize_list_form."""
    entry = sqs(message_filter={"region": "^eu"})

    for queues in ({"q": entry}, [{"queue_id": "q", **entry}]):
        assert config(queues).named_queues == ("q",)
        assert matches(queues, region="eu-west")
        assert not matches(queues, region="us-west")


@pytest.mark.parametrize(
    ("filter_", "attributes", "expected"),
    [
        pytest.param({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, True, id="all entries match"),
        pytest.param({"a": "x", "b": "y"}, {"a": "x", "b": "n"}, False, id="one does not"),
        pytest.param({"a": "x", "b": "y"}, {"a": "x"}, False, id="one is not there"),
        pytest.param({}, {"a": "x"}, False, id="the empty filter matches nothing"),
        pytest.param({"REGION": "EU"}, {"region": "eu-west"}, True, id="case of names and values does not count"),
        pytest.param({"who": "^me$"}, {"who": "me"}, True, id="anchored"),
        pytest.param({"who": "^me$"}, {"who": "meme"}, False, id="anchored, longer"),
        pytest.param({"who": "em"}, {"who": "meme"}, True, id="searched for, not matched whole"),
    ],
)
def test_message_filter(filter_, attributes, expected):
    """Wire page, A.1 and A.2."""
    assert matches({"q": sqs(message_filter=filter_)}, **attributes) is expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("true", True),
        ("null, true", True),
        ("false", False),
        ("1", False),
        ('"true"', False),
        ("empty", False),
        ("error", False),
    ],
)
def test_a_jq_filter_must_output_true(program, expected):
    """Wire page, A.1: a truthy text is no match, nor is a run-time error."""
    assert matches({"q": sqs(jq_filter=program)}) is expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(sqs(message_filter={"a": "x"}, jq_filter="true"), True, id="both match"),
        pytest.param(sqs(message_filter={"a": "x"}, jq_filter="false"), False, id="jq does not"),
        pytest.param(sqs(message_filter={"a": "n"}, jq_filter="true"), False, id="attributes do not"),
        pytest.param(sqs(message_filter={}, jq_filter="true"), True, id="an empty one next to jq"),
        pytest.param(sqs(filter={"metadata": "^a: x$"}, jq_filter="true"), True, id="the newer one and jq"),
        pytest.param(sqs(filter={"metadata": "^a: x$"}, jq_filter="false"), False, id="the newer one, and not jq"),
        pytest.param(sqs(), False, id="neither matches nothing"),
        pytest.param(sqs(message_filter=None, jq_filter=None), False, id="null is neither"),
    ],
)
def test_two_filters_must_both_match_and_none_matches_nothing(entry, expected):
    """Wire page, A.1."""
    assert matches({"q": entry}, a="x") is expected


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ({"metadata": "^tenant: blue$"}, True),
        ({"metadata": "blue"}, True),
        ({"metadata": "^Tenant: blue$"}, False),
        ({"metadata": "BLUE"}, False),
        ({"metadata": "^blue"}, False),
        ({"any_of": [{"metadata": "nothing"}, {"metadata": "size: 7"}]}, True),
        ({"any_of": [{"metadata": "nothing"}, {"metadata": "none"}]}, False),
        ({"all_of": [{"metadata": "tenant: b"}, {"metadata": "size: 7"}]}, True),
        ({"all_of": [{"metadata": "tenant: b"}, {"metadata": "none"}]}, False),
    ],
)
def test_the_composable_filter_searches_lines_with_case(filter_, expected):
    """Wire page, A.1: newest documents."""
    assert matches({"q": sqs(filter=filter_)}, tenant="blue", size="7") is expected


def test_a_star_is_every_queue_without_its_own_entry():
    queues = {"*": sqs(jq_filter="true"), "ad-queue": sqs(message_filter={})}

    assert matches(queues, "anything")
    assert not matches(queues, "ad-queue")
    assert config(queues).named_queues == ("ad-queue",)
    assert config(queues).steals(QueueId("anything"))
    assert not config(queues).steals(QueueId("ad-queue"))


def test_an_unlisted_queue_matches_nothing_with_a_reason():
    """Operator 3.178: a filter on one queue never affects another."""
    claim = config({"q": sqs(jq_filter="true")}).claim(ANN, QueueId("other"))

    verdict = claim.filter.verdict(FilterInput.of(Message.parse({"Body": ""}), sns=False))
    assert not verdict.matches
    assert verdict.reason == "queue 'other' is not listed, so it matches nothing"


def test_mirroring_is_set_for_each_queue():
    parsed = config({"q": sqs(queue_mode="mirror", jq_filter="true"), "p": sqs(queue_mode="steal", jq_filter="true")})

    assert [entry.mode for entry in parsed.entries] == [Mode.MIRROR, Mode.STEAL]
    assert not parsed.steals(QueueId("q"))
    assert parsed.steals(QueueId("p"))


def test_a_queue_listed_twice_matches_what_either_entry_matches():
    queues = [{"queue_id": "q", **sqs(message_filter={"a": value})} for value in ("x", "y")]

    assert matches(queues, a="x")
    assert matches(queues, a="y")
    assert not matches(queues, a="z")


def test_queues_of_other_brokers_are_reported_and_not_split():
    parsed = config(
        [{"queue_id": "orders", "queue_type": "Kafka", "payload_protobuf": {}}, {"queue_id": "orders", **sqs()}]
    )

    assert parsed.other_brokers == ("orders (Kafka)",)
    assert parsed.named_queues == ("orders",)


@pytest.mark.parametrize("document", [None, [], {}, {"feature": {}}, {"feature": {"split_queues": {}}}, {"feature": 1}])
def test_without_queues_there_is_nothing_to_split(document):
    with pytest.raises(InvalidSessionConfig, match="nothing to split"):
        parse_mirrord_file(document, PlainLanguages())


@pytest.mark.parametrize(
    ("queues", "found"),
    [
        pytest.param({"q": {}}, [".q.queue_type: is missing; expected SQS"], id="no type"),
        pytest.param({"q": sqs(queue_type=1)}, [".q.queue_type: expected a text, not 1"], id="type is no text"),
        pytest.param(
            {"q": sqs(x=1)},
            [".q.x: unknown field; known here: queue_type, queue_mode, message_filter, jq_filter, filter"],
            id="unknown field",
        ),
        pytest.param(
            {"q": sqs(queue_mode="share")},
            [".q.queue_mode: expected steal, exclusive or mirror, not 'share'"],
            id="mode",
        ),
        pytest.param(
            {"q": sqs(message_filter={"a": 1})}, [".q.message_filter.a: expected a text, not 1"], id="pattern"
        ),
        pytest.param(
            {"q": sqs(message_filter="a")}, [".q.message_filter: expected an object, not 'a'"], id="text filter"
        ),
        pytest.param({"q": sqs(jq_filter="")}, [".q.jq_filter: not a jq program: '': unknown"], id="empty program"),
        pytest.param({"q": sqs(jq_filter=5)}, [".q.jq_filter: expected a text, not 5"], id="program is no text"),
        pytest.param(
            {"q": sqs(filter={})}, [".q.filter: expected exactly one of metadata, any_of, all_of"], id="empty node"
        ),
        pytest.param(
            {"q": sqs(filter={"metadata": "a", "any_of": []})},
            [".q.filter: expected exactly one of metadata, any_of, all_of"],
            id="mixed node",
        ),
        pytest.param(
            {"q": sqs(filter={"header": "a"})},
            [".q.filter: expected exactly one of metadata, any_of, all_of"],
            id="unknown node",
        ),
        pytest.param(
            {"q": sqs(filter={"any_of": []})}, [".q.filter.any_of: expected at least one filter"], id="empty list"
        ),
        pytest.param(
            {"q": sqs(filter={"all_of": [{"any_of": []}]})},
            [
                ".q.filter.all_of[0].any_of: unknown field; known here: metadata",
                ".q.filter.all_of[0].metadata: is missing or empty",
            ],
            id="nested list",
        ),
        pytest.param(
            {"q": sqs(filter={"metadata": ""})}, [".q.filter.metadata: is missing or empty"], id="empty pattern"
        ),
        pytest.param(
            {"q": sqs(filter={"metadata": "a"}, message_filter={})},
            [".q.filter: give either message_filter or filter, not both"],
            id="both shapes",
        ),
        pytest.param([{**sqs()}], ["[0].queue_id: is missing or empty"], id="list without id"),
        pytest.param(
            {"q": {"queue_id": "q", **sqs()}},
            [".q.queue_id: the key is already the queue id; use a list to give it as a field"],
            id="map with id",
        ),
        pytest.param("q", [": expected an object, not 'q'"], id="neither map nor list"),
        pytest.param(
            [5],
            [
                "[0]: expected an object, not 5",
                "[0].queue_id: is missing or empty",
                "[0].queue_type: is missing; expected SQS",
            ],
            id="list of numbers",
        ),
        pytest.param(
            [{"queue_id": "q", **sqs(queue_mode=mode)} for mode in ("steal", "mirror")],
            [": queue 'q' is listed with queue_mode mirror and steal"],
            id="both modes",
        ),
    ],
)
def test_each_problem_is_named_with_its_path(queues, found):
    assert problems(queues) == found


def test_an_unknown_queue_type_is_refused_with_the_known_ones():
    (problem,) = problems({"q": sqs(queue_type="ActiveMQ")})

    assert problem.startswith(".q.queue_type: unknown queue type 'ActiveMQ'; known: SQS, Kafka, RMQ, GCPPubSub")


def test_all_problems_are_reported_together():
    """Wire page, A.1: errors at the client, before anything is created."""
    found = problems(
        {
            "first": sqs(message_filter={"tenant": "(blue"}, filter={"metadata": "["}, colour="red"),
            "second": sqs(queue_type="Pulsar"),
            "third": sqs(jq_filter="idk | whatever"),
        }
    )

    assert [line.split(":")[0] for line in found] == [
        ".first.colour",
        ".first.filter",
        ".first.message_filter.tenant",
        ".first.filter.metadata",
        ".second.queue_type",
        ".third.jq_filter",
    ]
