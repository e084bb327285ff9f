"""The commands of a stage by SQS alone, with boto3: an exchange, a split, or an offer.

Usage: stage.py exchange CONTROL_URL REPLY_URL
       stage.py split CONTROL_URL REPLY_URL TARGET
       stage.py offer BROKER_URL FILE, which holds a version line and an offer
"""

import json
import secrets
import sys
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

SQS = boto3.client("sqs")
STATES = ("paid", "sent")
WHO = {"DataType": "String", "StringValue": "ann"}


def ask(control: str, replies: str, command: str, **fields: object) -> Any:
    """Send a command and return its result. Raises `RuntimeError` with the reason of the stage."""
    request = secrets.token_hex(8)
    body = json.dumps({"command": command, "id": request, "reply": True, **fields})
    SQS.send_message(QueueUrl=control, MessageBody=body)
    while True:
        for message in SQS.receive_message(QueueUrl=replies, WaitTimeSeconds=20).get("Messages", ()):
            reply, handle = json.loads(message["Body"]), message["ReceiptHandle"]
            if reply["id"] != request:  # the reply to another program of this user
                SQS.change_message_visibility(QueueUrl=replies, ReceiptHandle=handle, VisibilityTimeout=0)
                continue
            SQS.delete_message(QueueUrl=replies, ReceiptHandle=handle)
            if not reply["ok"]:
                raise RuntimeError(reply["error"])
            return reply["result"]


def exchange(control: str, replies: str) -> None:
    """Declare an ordered exchange and a queue, bind them, publish twice and consume."""
    exchange = ask(control, replies, "declare_exchange", exchange="xs_sqs.fifo")
    queue = ask(control, replies, "declare_queue", queue="q_sqs.fifo")
    ask(control, replies, "bind", exchange="xs_sqs.fifo", queue="q_sqs.fifo", pattern="order.#")
    key = "order.17"
    for state in STATES:
        SQS.send_message(
            QueueUrl=exchange["url"],
            MessageBody=f"{key} is {state}",
            MessageAttributes={"topic": {"DataType": "String", "StringValue": key}, "who": WHO},
            MessageGroupId=key,
            MessageDeduplicationId=f"{key}-{state}",
        )
    seen: list[str] = []
    while len(seen) < len(STATES):
        received = SQS.receive_message(QueueUrl=queue["url"], WaitTimeSeconds=20, MessageAttributeNames=["All"])
        for message in received.get("Messages", ()):
            seen.append(message["Body"])
            print(message["MessageAttributes"]["sequence"]["StringValue"], message["Body"])
            SQS.delete_message(QueueUrl=queue["url"], ReceiptHandle=message["ReceiptHandle"])
    ask(control, replies, "delete_queue", queue="q_sqs.fifo")
    ask(control, replies, "delete_exchange", exchange="xs_sqs.fifo")


def split(control: str, replies: str, target: str) -> None:
    """Start a session, receive one message of it, and end the session."""
    filters = {"*": {"queue_type": "SQS", "message_filter": {"author": "^ann$"}}}
    named = {"target": target, "session": f"ann-{secrets.token_hex(4)}"}
    state = ask(control, replies, "start", owner="ann", config={"feature": {"split_queues": filters}}, **named)
    while state["phase"] != "ready":
        time.sleep(1)
        state = ask(control, replies, "heartbeat", **named)
    original, url = state["queues"][0]["original"], state["queues"][0]["url"]
    original_url = SQS.get_queue_url(QueueName=original)["QueueUrl"]
    SQS.send_message(QueueUrl=original_url, MessageBody="by ann", MessageAttributes={"author": WHO})
    while not (found := SQS.receive_message(QueueUrl=url, WaitTimeSeconds=10).get("Messages", ())):
        ask(control, replies, "heartbeat", **named)  # at least every minute
    print("got", found[0]["Body"])
    SQS.delete_message(QueueUrl=url, ReceiptHandle=found[0]["ReceiptHandle"])
    print(ask(control, replies, "stop", **named)["phase"])


def offer(broker: str, file: str) -> None:
    """Send an offer, and print the answer of a proxy."""
    client = secrets.token_hex(8)
    attributes: Any = {"ClientID": {"DataType": "String", "StringValue": client}}
    SQS.send_message(QueueUrl=broker, MessageBody=Path(file).read_text(), MessageAttributes=attributes)
    for _ in range(5):
        time.sleep(1)
        try:
            url = SQS.get_queue_url(QueueName=f"snowflake-client-{client}")["QueueUrl"]
            break
        except SQS.exceptions.QueueDoesNotExist:
            continue
    while not (found := SQS.receive_message(QueueUrl=url, WaitTimeSeconds=20).get("Messages", ())):
        continue
    print(found[0]["Body"])


PROGRAMS: dict[str, Callable[..., None]] = {"exchange": exchange, "split": split, "offer": offer}

if __name__ == "__main__":
    name, *arguments = sys.argv[1:] or [""]
    if name not in PROGRAMS:
        sys.exit(__doc__)
    try:
        signature(PROGRAMS[name]).bind(*arguments)
    except TypeError as error:  # too few or too many
        sys.exit(f"{error}\n\n{__doc__}")
    try:
        PROGRAMS[name](*arguments)
    except (OSError, RuntimeError, BotoCoreError, ClientError) as error:
        sys.exit(f"{error}\n\n{__doc__}")
