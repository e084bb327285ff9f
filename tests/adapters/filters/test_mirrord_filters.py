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

# The filter that `mirrord up` writes for its session (split_queues.rs, session_key_string_value_jq).
MIRRORD_UP = (
    "(.MessageAttributes // {}) | "
    '[.. | select(type == "string" and contains("mirrord-session=zamek.bobolice"))] | length > 0'
)


def matches(languages: Languages, entry: dict[str, object], message: dict[str, object], *, sns: bool = False) -> bool:
    document = {"feature": {"split_queues": {"q": {"queue_type": "SQS", **entry}}}}
    claim = parse_mirrord_file(document, languages).claim(SessionId("ann"), QueueId("q"))
    return decide(Message.parse({"Body": "", **message}), [claim], sns=sns).owner == "ann"


def attributes(**values: str) -> dict[str, object]:
    return {"MessageAttributes": {name: {"DataType": "String", "StringValue": text} for name, text in values.items()}}


@pytest.mark.parametrize(
    ("entry", "message", "expected"),
    [
        pytest.param({"message_filter": {"tenant": "^Avi\\."}}, attributes(tenant="Avi.Test"), True, id="sandbox"),
        pytest.param({"message_filter": {"tenant": "^Avi\\."}}, attributes(tenant="Basic"), False, id="sandbox, other"),
        pytest.param({"message_filter": {"tenant": "^Avi\\."}}, attributes(TENANT="avi.test"), True, id="case"),
        pytest.param(
            {"message_filter": {"baggage": ".*mirrord-session=alice.*"}},
            attributes(baggage="a=1,mirrord-session=alice,b=2"),
            True,
            id="baggage",
        ),
        pytest.param(
            {"message_filter": {"wows": "so wows", "coolz": "^very"}}, attributes(wows="so wows"), False, id="and"
        ),
        pytest.param({"message_filter": {"client": "^(?!test)"}}, attributes(client="prod"), True, id="look-around"),
        pytest.param(
            {"jq_filter": ".Body | fromjson | .important == true"}, {"Body": '{"important":true}'}, True, id="jq"
        ),
        pytest.param(
            {"jq_filter": ".Body | fromjson | .important"}, {"Body": '{"important":"true"}'}, False, id="truthy"
        ),
        pytest.param({"jq_filter": ".Body | fromjson | .important == true"}, {"Body": "plain"}, False, id="error"),
        pytest.param(
            {"jq_filter": '.Body | fromjson | .customer_email | test("metalbear\\\\.com")'},
            {"Body": '{"customer_email":"a@metalbear.com"}'},
            True,
            id="email",
        ),
        pytest.param(
            {"jq_filter": '.MessageAttributes.client.StringValue | test("^a$")'},
            attributes(client="a"),
            True,
            id="attribute",
        ),
        pytest.param(
            {"jq_filter": '.MessageAttributes.client.StringValue | test("^a$")'},
            attributes(client="A"),
            False,
            id="jq case",
        ),
        pytest.param(
            {"message_filter": {"client": "^a$"}, "jq_filter": ".Body | fromjson | .important == true"},
            {"Body": '{"important":true}', **attributes(client="a")},
            True,
            id="both",
        ),
        pytest.param(
            {"message_filter": {"client": "^a$"}, "jq_filter": ".Body | fromjson | .important == true"},
            {"Body": '{"important":true}', **attributes(client="b")},
            False,
            id="one of both",
        ),
        pytest.param(
            {
                "filter": {
                    "any_of": [{"metadata": "^baggage: .*mirrord-session=alice.*$"}, {"metadata": "^tracestate: "}]
                }
            },
            attributes(baggage="x,mirrord-session=alice"),
            True,
            id="composed",
        ),
        pytest.param(
            {"filter": {"metadata": "^baggage: .*mirrord-session=alice.*$"}},
            attributes(Baggage="mirrord-session=alice"),
            False,
            id="composed is case-sensitive",
        ),
        pytest.param(
            {"jq_filter": MIRRORD_UP}, attributes(x="a,mirrord-session=zamek.bobolice"), True, id="mirrord up"
        ),
        pytest.param(
            {"jq_filter": MIRRORD_UP}, {"Body": "mirrord-session=zamek.bobolice"}, False, id="up, in the body"
        ),
        pytest.param({"jq_filter": "env.HOME != null"}, {}, False, id="environment"),
    ],
)
def test_a_documented_filter_matches_the_documented_messages(languages, entry, message, expected):
    assert matches(languages, entry, message) is expected


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
