"""mirrord's documented filters in the real filter engines; the wire page cites each source."""

import json
from datetime import timedelta

import pytest

from signalbox.filters.languages import Languages
from signalbox.messages import Message
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.session_config import InvalidSessionConfig, QueueId, parse_mirrord_file
from tests.adapters.filters.verdicts import verdicts


def matches(languages: Languages, entry: dict[str, object], message: dict[str, object], *, sns: bool = False) -> bool:
    document = {"feature": {"split_queues": {"q": {"queue_type": "SQS", **entry}}}}
    claim = parse_mirrord_file(document, languages).claim(SessionId("ann"), QueueId("q"))
    return decide(Message.parse({"Body": "", **message}), [claim], sns=sns).owner == "ann"


def attributes(**values: str) -> dict[str, object]:
    return {"MessageAttributes": {name: {"DataType": "String", "StringValue": text} for name, text in values.items()}}


@pytest.mark.parametrize("case", verdicts("documented.json", "id"))
def test_a_documented_filter_matches_the_documented_messages(languages, case):
    """`mirrord up` writes one with `mirrord-session` for its session (split_queues.rs, session_key_string_value_jq)."""
    assert matches(languages, case["filter"], case["message"]) is case["matches"]


def test_a_number_is_matched_as_text_and_a_binary_value_never_matches(languages):
    """Numbers as in operator 3.118.0; mirrord does not define binary values."""
    message = {
        "MessageAttributes": {
            "size": {"DataType": "Number", "StringValue": "42"},
            "data": {"DataType": "Binary", "BinaryValue": "NDI="},
        }
    }

    assert matches(languages, {"message_filter": {"size": "^42$"}}, message)
    assert not matches(languages, {"message_filter": {"data": ""}}, message)


def test_filters_match_the_attributes_within_an_sns_notification(languages):
    """Operator 3.132 fixed the filtering of JSON bodies that are not envelopes."""
    envelope = {"Type": "Notification", "MessageAttributes": {"region": {"Type": "String", "Value": "eu"}}}
    entry = {"message_filter": {"region": "eu"}}

    assert matches(languages, entry, {"Body": json.dumps(envelope)}, sns=True)
    assert not matches(languages, entry, {"Body": json.dumps(envelope)}, sns=False)
    assert matches(languages, entry, {"Body": '{"order": 7}', **attributes(region="eu")}, sns=True)
    assert not matches(languages, entry, {"Body": '{"order": 7}'}, sns=True)


@pytest.mark.parametrize("entry", [{"jq_filter": ""}, {"jq_filter": "snow"}, {"message_filter": {"a": "("}}])
def test_programs_that_mirrords_client_refuses_are_refused(languages, entry):
    """split_queues.rs, jq_verification_fails_on_invalid_programs."""
    with pytest.raises(InvalidSessionConfig, match=r"feature\.split_queues\.q\."):
        matches(languages, entry, {})


def test_an_endless_filter_is_aborted_and_the_other_filters_continue():
    """Since operator 3.185.1 a slow jq filter cancels its session."""
    languages = Languages()
    document = {"feature": {"split_queues": {"q": {"queue_type": "SQS", "jq_filter": "def f: f; f"}}}}
    slow = parse_mirrord_file(document, languages).claim(SessionId("ann"), QueueId("q"))
    document["feature"]["split_queues"]["q"] = {"queue_type": "SQS", "message_filter": {"tenant": "a"}}
    quick = parse_mirrord_file(document, languages).claim(SessionId("bob"), QueueId("q"))

    message = Message.parse({"Body": "", **attributes(tenant="a")})
    decision = decide(message, [slow, quick], budget=FilterBudget.of(languages, timedelta(seconds=3)))
    languages.engines.close()

    assert decision.owner == "bob"
    assert [verdict.session for verdict in decision.stopped] == ["ann"]
