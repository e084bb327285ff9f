"""The demo of rendezvous: a client's offer, a proxy's answer, the queue's end, and the day's report of both."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.credentials import client_credentials
from signalbox.aws.leases import DynamoLeases
from signalbox.errors import UnavailableError
from signalbox.local import spark
from signalbox.local.emulator import Credentials
from signalbox.local.gateway import DELIVERY_SECONDS
from signalbox.local.progress import step
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.client import Answer, SqsRendezvous
from signalbox.rendezvous.offer import offer_body
from signalbox.rendezvous.simulator import ProxySimulator, sample_answer, sample_offer, wait_for_proxy

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from signalbox.cli.deployment import Deployment

Row = tuple[str, str]
SHOWN_OF_REPORT = ("snowflake-ips-total", "client-snowflake-match-count", "client-sqs-count")


def rendezvous_rows(deployment: "Deployment") -> Iterator[Row]:
    """Bring a client and a proxy together and yield what was seen."""
    offer = sample_offer(secrets.token_hex(8))
    with step("rendezvous: an offer, an answer"):
        answer, accepted = _exchange(deployment, offer)
    if answer.session_description != sample_answer(offer) or not accepted:
        raise UnavailableError("the answer that came is not the one that the proxy gave to this offer")
    yield (
        "offer in",
        f"{len(offer_body(offer))} bytes to {deployment.outputs['BrokerQueueName']}, client {answer.client_id}",
    )
    yield "answer out", f"{len(answer.session_description)} bytes, the proxy's own"
    yield "time", f"{answer.after.total_seconds():.2f} s, of which the client sleeps the first"
    yield from _queue_rows(deployment, answer.client_id)
    yield from _report_rows(deployment)


def _exchange(deployment: "Deployment", offer: str) -> tuple[Answer, bool]:
    client = deployment.session_of(client_credentials(deployment.session(), deployment.outputs))
    rendezvous = SqsRendezvous(
        client.client("sqs"),
        deployment.outputs["BrokerQueueUrl"],
        client_queue_prefix=deployment.outputs["ClientQueuePrefix"],
    )
    proxy = ProxySimulator(deployment.rendezvous_url)
    with ThreadPoolExecutor() as pool:
        served = pool.submit(proxy.serve_once)
        wait_for_proxy(deployment.rendezvous_url)
        answer = rendezvous.exchange(offer_body(offer))
        return answer, served.result().accepted is True


def _queue_rows(deployment: "Deployment", client_id: str) -> Iterator[Row]:
    """Show the client's queue, bring the end of its lease forward, and let the sweep delete it."""
    session, outputs = deployment.session(), deployment.outputs
    name = QueueName(outputs["ClientQueuePrefix"] + client_id)
    url = QueueUrl(session.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])
    yield "queue created", name
    leases = DynamoLeases(session.resource("dynamodb").Table(outputs["LeaseTable"]))
    leases.put(Lease(name, url, "rendezvous", due_at=datetime.now(UTC)))
    invoked = session.client("lambda").invoke(
        FunctionName=outputs["SweepFunctionName"], Payload=json.dumps({"task": "leases"})
    )
    deleted = json.loads(invoked["Payload"].read())["deleted"]
    yield "queues deleted", f"{deleted}, by the sweep (lease brought forward for the demo)"


def _report_rows(deployment: "Deployment") -> Iterator[Row]:
    day = datetime.now(UTC).date()
    bucket = deployment.outputs["HistoryBucket"]
    s3 = deployment.session().client("s3")
    with step("history: Firehose delivers"):
        files = _settled_files(s3, bucket, prefix=f"raw/dt={day}/")
    yield "history", f"{files} Parquet files in s3://{bucket}/raw/dt={day}/"
    with step("history: the Glue job rendezvous_report on Spark") as say:
        report_path = f"s3://{bucket}/{deployment.outputs['ReportPrefix'].rstrip('/')}"
        _run_report(deployment, day=day.isoformat(), report_path=report_path, say=say)
    key = f"{deployment.outputs['ReportPrefix'].rstrip('/')}/text/day={day}.txt"
    report = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    lines = [line for line in report.splitlines() if line.startswith(SHOWN_OF_REPORT)]
    yield "report of the Glue job", "; ".join(lines)
    yield "whole report", f"s3://{bucket}/{key}"


def _settled_files(s3: "S3Client", bucket: str, *, prefix: str) -> int:
    """Return how many files there are, once none has come for longer than Firehose gathers records."""
    count, since = 0, time.monotonic()
    while time.monotonic() - since < 2 * DELIVERY_SECONDS:
        time.sleep(DELIVERY_SECONDS / 4)
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        now = sum(page["KeyCount"] for page in pages)
        if now != count:
            count, since = now, time.monotonic()
    return count


def _run_report(deployment: "Deployment", *, day: str, report_path: str, say: Callable[[str], None]) -> None:
    if deployment.endpoint_url is None:
        raise UnavailableError("the demo runs on the local stage only")
    spark.run_job(
        "rendezvous_report",
        {
            "history_path": f"s3://{deployment.outputs['HistoryBucket']}/raw",
            "report_path": report_path,
            "day": day,
        },
        endpoint_url=deployment.endpoint_url,
        credentials=Credentials(**deployment.administrator),
        region=deployment.region,
        on_line=say,
    )
