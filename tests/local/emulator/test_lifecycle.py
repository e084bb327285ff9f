"""The emulator is started, found again, and ended with all its workers."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local import stage
from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.processes import is_alive
from signalbox.local.stage_folder import StageFolder
from tests.patience import wait_for


def test_a_port_in_use_is_reported_with_a_free_one_to_try(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(RejectedError, match=rf"port {port} of 127.0.0.1 is taken .*--port {port + 1}"):
            lifecycle.start(StageFolder(tmp_path), port=port)


def test_an_emulator_that_was_not_started_is_not_found(tmp_path):
    stage_folder = StageFolder(tmp_path)

    assert lifecycle.running(stage_folder) is None
    assert lifecycle.stop(stage_folder) is False


def test_the_keys_of_a_stages_users_go_with_it(tmp_path):
    stage_folder = StageFolder(tmp_path)
    stage_folder.users.mkdir()
    (stage_folder.users / "alice.json").touch()

    lifecycle.stop(stage_folder)

    assert not stage_folder.users.exists()


def test_a_lock_file_that_no_process_holds_names_no_process(tmp_path):
    stage_folder = StageFolder(tmp_path)
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.lock.write_text(str(os.getpid()))

    assert lifecycle.process_id(stage_folder) is None


def test_a_number_in_a_lock_ends_no_process_of_another_program(tmp_path):
    stage_folder = StageFolder(tmp_path)
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.lock.write_text("1")

    with stage_folder.lock.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert lifecycle.process_id(stage_folder) == 1
        assert lifecycle.stop(stage_folder) is False


@pytest.mark.emulator
def test_a_started_emulator_is_found_again(emulator_folder, running):
    assert lifecycle.running(emulator_folder) == running


@pytest.mark.emulator
def test_keys_and_log_are_readable_by_their_owner_only(emulator_folder, running):
    assert emulator_folder.running.stat().st_mode & 0o777 == 0o600
    assert emulator_folder.emulator.stat().st_mode & 0o777 == 0o700


@pytest.mark.emulator
def test_an_emulator_of_another_version_is_restarted_with_its_queues_tables_objects_keys_and_buffered_records(tmp_path):
    stage_folder = StageFolder(tmp_path)
    with lifecycle.lifeline() as lifeline:
        before = lifecycle.start(stage_folder, port=0, lifeline=lifeline)
        session = before.session()
        url = _filled(session)

        after = stage._upgraded(stage_folder, replace(before, version="an earlier one"), lifeline=lifeline)

        assert after == replace(before, instance=after.instance, version=lifecycle.version())
        assert lifecycle.running(stage_folder) == after
        assert stage._upgraded(stage_folder, after, lifeline=lifeline) is after
        assert _contents(session, url) == {"message": "m", "item": "i", "object": b"o", "secret": "s", "record": b"r\n"}
        assert not list(stage_folder.services.glob("*"))
    lifecycle.stop(stage_folder)
    assert not stage_folder.objects.exists()


def _filled(session):
    """Put something of each kind into the emulator; return the URL of its queue."""
    url = session.client("sqs").create_queue(QueueName="q", Attributes={"VisibilityTimeout": "43200"})["QueueUrl"]
    session.client("sqs").send_message(QueueUrl=url, MessageBody="m")
    session.client("dynamodb").create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    session.client("dynamodb").put_item(TableName="table", Item={"pk": {"S": "i"}, "bytes": {"B": b"\0"}})
    s3 = session.client("s3")
    for bucket in ("objects", "records"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="objects", Key="a/b", Body=b"o")
    session.client("secretsmanager").create_secret(Name="secret", SecretString="s")
    destination = {"BucketARN": "arn:aws:s3:::records", "RoleARN": f"arn:aws:iam::{ACCOUNT}:role/firehose"}
    firehose = session.client("firehose")
    firehose.create_delivery_stream(DeliveryStreamName="d", ExtendedS3DestinationConfiguration=destination)
    firehose.put_record(DeliveryStreamName="d", Record={"Data": b"r\n"})
    return url


def _contents(session, url):
    s3, dynamodb = session.client("s3"), session.client("dynamodb")
    (record,) = s3.list_objects_v2(Bucket="records")["Contents"]
    return {
        "message": session.client("sqs").receive_message(QueueUrl=url)["Messages"][0]["Body"],
        "item": dynamodb.get_item(TableName="table", Key={"pk": {"S": "i"}})["Item"]["pk"]["S"],
        "object": s3.get_object(Bucket="objects", Key="a/b")["Body"].read(),
        "secret": session.client("secretsmanager").get_secret_value(SecretId="secret")["SecretString"],
        "record": s3.get_object(Bucket="records", Key=record["Key"])["Body"].read(),
    }


# A process that holds a stage's lock with its id in it, and a thread of it that ends later: here a second process.
HOLD = """
import fcntl, os, sys
lock = open(f"{sys.argv[1]}/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print(os.getpid(), file=lock, flush=True)
if os.fork():
    print("held", flush=True)
sys.stdin.read()
open(sys.argv[2], "w")
"""


def test_the_state_is_saved_only_when_the_lock_is_free_for_the_next_emulator(tmp_path):
    stage_folder, released = StageFolder(tmp_path), tmp_path / "released"
    stage_folder.services.mkdir(parents=True)
    (stage_folder.services / "sqs.json").touch()
    stage_folder.log.touch()

    def save() -> bool:
        lifecycle._save(stage_folder)
        return released.exists()

    with (
        subprocess.Popen(
            [sys.executable, "-c", HOLD, stage_folder.emulator, released], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as emulator,
        ThreadPoolExecutor(1) as threads,
    ):
        emulator.stdout.readline()
        saved = threads.submit(save)
        wait_for(lambda: not is_alive(emulator.pid), "the end of a process")
        for _ in range(10):  # as long as a save that does not wait would take
            lifecycle._kill_workers(stage_folder)
        emulator.stdin.close()
        assert saved.result()


@pytest.mark.emulator
def test_an_emulator_that_did_not_save_its_state_is_not_restarted_without_it(tmp_path):
    stage_folder = StageFolder(tmp_path)
    with lifecycle.lifeline() as lifeline:
        running = lifecycle.start(stage_folder, port=0, lifeline=lifeline)
        stage_folder.services.rmdir()
        stage_folder.services.touch()

        with pytest.raises(UnavailableError, match="did not save its state"):
            lifecycle.restart(stage_folder, running, lifeline=lifeline)


@pytest.mark.emulator
def test_a_killed_emulator_is_noticed_and_its_workers_are_ended(tmp_path):
    stage_folder = StageFolder(tmp_path)
    lifecycle.start(stage_folder, port=0)
    leader = lifecycle.process_id(stage_folder)
    command = [sys.executable, "-c", "print('here', flush=True); input()", f"{stage_folder.temporary}/worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker.stdout.readline()

    os.kill(leader, signal.SIGKILL)
    wait_for(lambda: not is_alive(leader), "the end of a process")

    assert lifecycle.running(stage_folder) is None
    assert lifecycle.stop(stage_folder) is True
    assert not is_alive(worker.pid)
    assert not stage_folder.running.exists()


@pytest.mark.emulator
def test_an_emulator_with_a_lifeline_ends_when_the_lifeline_is_closed(tmp_path):
    stage_folder = StageFolder(tmp_path)
    lifeline, held = os.pipe()
    lifecycle.start(stage_folder, port=0, lifeline=lifeline)
    leader = lifecycle.process_id(stage_folder)

    os.close(held)

    wait_for(lambda: not is_alive(leader), "the end of a process")
    os.close(lifeline)
    lifecycle.stop(stage_folder)
