"""Explanations of routing decisions from files."""

import pytest

from signalbox.splitting.forwarding.explanation import (
    InvalidMessages,
    as_document,
    explained,
    parse_messages,
    parse_sessions,
)
from signalbox.splitting.model.session_config import InvalidSessionConfig, QueueId
from tests.unit.splitting.forwarding.languages import PlainLanguages

MESSAGES = [
    {"Body": "1", "MessageAttributes": {"tenant": {"DataType": "String", "StringValue": "Avi.Test"}}},
    {"Body": "2"},
]


def described(*sessions: tuple[str, object]):
    return parse_sessions([{"session": name, "queues": queues} for name, queues in sessions], PlainLanguages())


def test_each_message_is_explained_by_the_verdict_of_every_session():
    sessions = described(
        ("ann", {"memes": {"queue_type": "SQS", "message_filter": {"tenant": r"^Avi\."}}}),
        ("bob", {"ads": {"queue_type": "SQS", "jq_filter": "true"}}),
        ("eve", [{"queue_id": "memes", "queue_mode": "mirror", "jq_filter": "true"}]),
    )

    first, second = explained(parse_messages(MESSAGES), sessions, QueueId("memes"), sns=False)

    assert as_document(0, first) == {
        "message": 0,
        "owner": "ann",
        "copies": ["eve"],
        "verdicts": [
            {
                "session": "ann",
                "mode": "steal",
                "matches": True,
                "outcome": "match",
                "reason": r"message_filter.tenant: matches '^Avi\\.'",
            },
            {
                "session": "bob",
                "mode": "steal",
                "matches": False,
                "outcome": "no match",
                "reason": "queue 'memes' is not listed, so it matches nothing",
            },
            {"session": "eve", "mode": "mirror", "matches": True, "outcome": "match", "reason": "jq_filter: says true"},
        ],
    }
    assert (second.owner, second.copies) == (None, ("eve",))
    assert as_document(1, second)["owner"] == "deployed"


def test_the_output_of_the_aws_cli_is_accepted():
    assert [message.body for message in parse_messages({"Messages": MESSAGES})] == ["1", "2"]


@pytest.mark.parametrize("document", [7, "x", {}, {"Messages": {}}, None])
def test_other_documents_are_refused(document):
    with pytest.raises(InvalidMessages, match="expected a list of SQS Message objects"):
        parse_messages(document)


def test_all_problems_of_messages_are_reported_together():
    with pytest.raises(InvalidMessages) as refusal:
        parse_messages([{}, {"Body": "b"}, 5])

    assert str(refusal.value).splitlines() == [
        "messages[0].Body: is missing",
        "messages[2]: expected an object, not 5",
        "messages[2].Body: is missing",
    ]


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param({}, ["sessions: expected a list of sessions, not {}"], id="no list"),
        pytest.param("ann", ["sessions: expected a list of sessions, not 'ann'"], id="a text"),
        pytest.param(
            [{"session": "ann", "queues": {}, "colour": 1}],
            ["sessions[0].colour: unknown field; known here: session, queues"],
            id="unknown field",
        ),
        pytest.param(
            [{"queues": {"q": {"jq_filter": "idk"}}}],
            [
                "sessions[0].session: is missing or empty",
                "sessions[0].queues.q.jq_filter: not a jq program: 'idk': unknown",
            ],
            id="no name, no program",
        ),
        pytest.param([{"session": "ann"}], ["sessions[0].queues: expected an object, not None"], id="no queues"),
        pytest.param(
            [{"session": name, "queues": {}} for name in ("ann", "ann", "deployed")],
            [
                "sessions[1].session: 'ann' is listed twice",
                "sessions[2].session: 'deployed' is the name of the deployed consumer",
            ],
            id="names",
        ),
    ],
)
def test_all_problems_of_sessions_are_reported_together(document, found):
    with pytest.raises(InvalidSessionConfig) as refusal:
        parse_sessions(document, PlainLanguages())

    assert str(refusal.value).splitlines() == found
