"""Firehose delivers the records of several calls in one object."""

import contextvars
import time

import pytest

from signalbox.local.emulator.patches.firehose_buffer import DELIVERY_SECONDS, DeliveryBuffer


def test_records_are_delivered_together_for_each_destination_in_the_context_of_the_first_call():
    delivered = []
    caller = contextvars.ContextVar("caller", default="none")
    buffer = DeliveryBuffer(lambda *arguments: delivered.append((caller.get(), *arguments)))
    stream, near, far = {"arn": "arn:s"}, {"id": "near"}, {"id": "far"}
    for name, destination, data in (("a", near, b"1\n"), ("b", near, b"2\n"), ("b", far, b"3\n")):
        context = contextvars.copy_context()
        context.run(caller.set, name)
        context.run(buffer.put, stream, destination, [("id", data)])
    assert delivered == []

    buffer.flush()
    buffer.flush()

    assert delivered == [
        ("a", stream, near, [("gathered", b"1\n2\n")]),
        ("b", stream, far, [("gathered", b"3\n")]),
    ]


@pytest.mark.emulator
@pytest.mark.release
def test_the_records_of_two_calls_become_one_object(running):
    session = running.session()
    s3, firehose = session.client("s3"), session.client("firehose")
    s3.create_bucket(Bucket="records")
    firehose.create_delivery_stream(
        DeliveryStreamName="records",
        ExtendedS3DestinationConfiguration={
            "BucketARN": "arn:aws:s3:::records",
            "RoleARN": "arn:aws:iam::000000000000:role/firehose",
        },
    )

    # Begins after a flush, so that both calls are within one interval.
    firehose.put_record_batch(DeliveryStreamName="records", Records=[{"Data": b"0\n"}])
    assert len(_objects(s3, count=1)) == 1
    for data in (b"1\n", b"2\n"):
        firehose.put_record_batch(DeliveryStreamName="records", Records=[{"Data": data}])

    assert sorted(_objects(s3, count=2)) == [b"0\n", b"1\n2\n"]


def _objects(s3, *, count):
    """Return the contents of the bucket's objects when there are `count`, or after three intervals."""
    deadline = time.monotonic() + 3 * DELIVERY_SECONDS
    found = []
    while len(found) < count and time.monotonic() < deadline:
        time.sleep(0.1)
        found = s3.list_objects_v2(Bucket="records").get("Contents", [])
    return [s3.get_object(Bucket="records", Key=one["Key"])["Body"].read() for one in found]
