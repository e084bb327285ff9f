"""The demo of rendezvous: a client's offer, a proxy's answer, and the deletion of the client's queue."""

import json
from datetime import UTC, datetime

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.flows.rendezvous import CAPABILITY, offers_over_sqs
from signalbox.flows.trial import Trial
from signalbox.queues import Lease, QueueName, QueueUrl


def show_rendezvous(trial: Trial) -> None:
    """Match a client and a proxy, end the lease of the client's queue early, and invoke the sweep that deletes it."""
    answer = offers_over_sqs(trial, count=1)
    session, outputs = trial.deployment.session(), trial.deployment.outputs
    with trial.journal.step(CAPABILITY, "the client's queue is deleted") as timing:
        name = QueueName(outputs["ClientQueuePrefix"] + answer.client_id)
        url = QueueUrl(session.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])
        leases = DynamoLeases(DynamoTable(session.client("dynamodb"), outputs["LeaseTable"]))
        leases.put(Lease(name, url, CAPABILITY, due_at=datetime.now(UTC)))
        invoked = session.client("lambda").invoke(
            FunctionName=outputs["SweepFunctionName"], Payload=json.dumps({"task": "leases"})
        )
        deleted = json.loads(invoked["Payload"].read())["deleted"]
        timing.detail = f"{name} was created; {deleted} deleted, by the sweep (the demo ended the lease early)"
