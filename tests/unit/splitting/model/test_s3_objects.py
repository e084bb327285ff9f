"""S3 event notifications: their objects, and the metadata that jq programs see of these."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from signalbox.messages import Message
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.claims import Claim, Decision, Mode, SessionId
from signalbox.splitting.model.filters import AllOf, AnyOf, ProgramFilter, uses_metadata
from signalbox.splitting.model.s3_objects import BatchMetadata, Metadata, S3Object, Unread, objects_of
from tests.unit.splitting.forwarding.languages import PlainProgram

CAT, DOG = S3Object("demo-uploads", "cat 1.jpg"), S3Object("demo-uploads", "dog.jpg", "v1")
# As documented: docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
TEST_EVENT = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "demo-uploads"}


def record(key: str, **more: str) -> dict[str, object]:
    return {
        "eventSource": "aws:s3",
        "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": "demo-uploads"}, "object": {"key": key, "size": 1, **more}},
    }


def event(*records: object) -> str:
    return json.dumps({"Records": list(records)})


def envelope(text: str) -> str:
    return json.dumps({"Type": "Notification", "Message": text})


CAT_EVENT, DOG_EVENT = event(record("cat+1.jpg")), event(record("dog.jpg", versionId="v1"))


@dataclass
class MemoryObjects:
    """The metadata of objects by key; an object without an entry does not exist."""

    metadata: Mapping[str, Metadata]
    asked: list[set[S3Object]] = field(default_factory=list)

    def fetch(self, objects: Collection[S3Object]) -> Mapping[S3Object, Metadata | Unread]:
        self.asked.append(set(objects))
        return {one: self.metadata.get(one.key, Unread.MISSING) for one in objects}


def owned_by(client: str) -> ProgramFilter:
    """Return the filter `.S3Metadata.client == CLIENT`."""
    text = f".S3Metadata.client == {client!r}"
    return ProgramFilter.of(text, PlainProgram(lambda one: [one.get("S3Metadata", {}).get("client") == client]))


def keyed(beginning: str) -> ProgramFilter:
    """Return the filter `.S3Object.key | startswith(BEGINNING)`."""
    return ProgramFilter.of(".S3Object.key", PlainProgram(lambda one: [one["S3Object"]["key"].startswith(beginning)]))


def decided(
    bodies: list[str], filters: list[object], port: MemoryObjects | None, *, sns: bool = False
) -> list[Decision]:
    messages = [Message.parse({"MessageId": str(number), "Body": body}) for number, body in enumerate(bodies)]
    claims = [Claim(SessionId(f"s{number}"), Mode.STEAL, one) for number, one in enumerate(filters)]
    metadata = BatchMetadata(messages, sns, port)
    return [decide(message, claims, sns=sns, metadata=metadata) for message in messages]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (CAT_EVENT, (CAT,)),
        (DOG_EVENT, (DOG,)),
        (event(record("cat+1.jpg"), record("dog.jpg", versionId="v1"), record("cat%201.jpg")), (CAT, DOG)),
        (event(record("caf%C3%A9%2B")), (S3Object("demo-uploads", "caf\u00e9+"),)),
        (
            event(*(record(str(number)) for number in range(11))),
            tuple(S3Object("demo-uploads", str(n)) for n in range(10)),
        ),
        (json.dumps(TEST_EVENT), ()),
        (event(1, {}, {"s3": 1}, {"s3": {"bucket": {}, "object": {"key": "a"}}}, record("")), ()),
        (event({"s3": {"bucket": 1, "object": {"key": "a"}}}, {"s3": {"bucket": {"name": "b"}, "object": []}}), ()),
        (event(record("\ud800")), ()),
        ("plain text", ()),
        ("[]", ()),
        ("[" * 100_000, ()),
        ('{"Records": {}}', ()),
    ],
)
def test_the_objects_of_a_notification_are_read_with_decoded_keys(body, found):
    assert objects_of(body, sns=False) == found


@pytest.mark.parametrize("body", [CAT_EVENT, envelope(CAT_EVENT)])
def test_the_event_may_be_inside_an_sns_notification_or_delivered_raw(body):
    """mirrord, docs: sqs.md, S3 to SNS to SQS."""
    assert objects_of(body, sns=True) == (CAT,)


@pytest.mark.parametrize("body", [envelope("plain"), json.dumps({"Type": "Notification", "Message": 1})])
def test_another_sns_notification_has_no_object(body):
    assert objects_of(body, sns=True) == ()
    assert objects_of(envelope(CAT_EVENT), sns=False) == ()


def test_a_program_that_names_the_metadata_sees_that_of_its_object():
    port = MemoryObjects({"cat 1.jpg": {"client": "a"}, "dog.jpg": {"client": "b"}})

    found = decided([CAT_EVENT, DOG_EVENT, envelope(CAT_EVENT)], [owned_by("a"), owned_by("b")], port, sns=True)

    assert [one.owner for one in found] == ["s0", "s1", "s0"]
    assert [one.unread for one in found] == [None] * 3


def test_the_metadata_of_a_batch_is_read_once_and_only_if_a_filter_asks():
    port = MemoryObjects({})

    decided([CAT_EVENT, DOG_EVENT], [keyed("x")], port)
    assert port.asked == []
    decided([CAT_EVENT, DOG_EVENT, CAT_EVENT, "other"], [owned_by("a"), owned_by("b")], port)
    assert port.asked == [{CAT, DOG}]


def test_the_key_needs_no_metadata():
    found = decided([CAT_EVENT, DOG_EVENT], [keyed("cat ")], None)

    assert [one.owner for one in found] == ["s0", None]


def test_an_event_with_several_objects_matches_if_one_of_them_does():
    both = event(record("dog.jpg"), record("cat+1.jpg"))

    assert [one.owner for one in decided([both], [keyed("cat")], None)] == ["s0"]
    assert [one.owner for one in decided([both], [keyed("bird")], None)] == [None]


def test_unknown_metadata_is_absent_and_the_decision_says_why():
    (found,) = decided([CAT_EVENT], [owned_by("a")], MemoryObjects({}))

    assert (found.owner, found.unread) == (None, Unread.MISSING)


def test_a_message_that_is_no_event_is_evaluated_as_it_is():
    port = MemoryObjects({})

    (found,) = decided(
        ["other"], [ProgramFilter.of(".S3Metadata", PlainProgram(lambda one: ["S3Object" not in one]))], port
    )

    assert (found.owner, found.unread, port.asked) == ("s0", None, [])


def test_without_a_port_the_metadata_of_a_message_from_a_file_counts():
    """`split explain` reads no object."""
    messages = [Message.parse({"Body": CAT_EVENT, "S3Metadata": {"client": "a"}}), Message.parse({"Body": CAT_EVENT})]
    claims = [Claim(SessionId("ann"), Mode.STEAL, owned_by("a"))]

    given, unknown = (
        decide(one, claims, metadata=BatchMetadata(messages, sns=False), ask_all=True) for one in messages
    )

    assert (given.owner, unknown.owner, unknown.unread) == ("ann", None, Unread.NOT_HERE)
    assert unknown.verdicts[0].reason == f"jq_filter: says false; {Unread.NOT_HERE}"


def test_a_filter_uses_metadata_if_one_of_its_programs_names_it():
    asking, other = owned_by("a"), keyed("a")

    assert [uses_metadata(one) for one in (asking, other)] == [True, False]
    assert uses_metadata(AnyOf((other, AllOf((asking,), ""))))
    assert not uses_metadata(AllOf((other,), ""))
