"""The stage of splitting: deployed consumers that read parameters or run in pods, and sessions of developers."""

import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.splitting import control, split
from signalbox.aws.exchange.queues import ORDERED
from signalbox.clients.control import ControlClient
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.control.protocol import REPLY_RETENTION, REPLY_VISIBILITY, CommandRejected
from signalbox.errors import SignalboxError
from signalbox.queues import is_fifo
from signalbox.splitting.control.protocol import REPLY_MARK, SessionStatus
from signalbox.splitting.control.reconcile_loop import REASON_KEPT_FOR
from signalbox.splitting.model.split import Phase
from stacks.settings.config import Config
from tests.simulation.clients import shared_client
from tests.simulation.functions import Mapping_
from tests.simulation.mappings import SimulatedLambda, SimulatedSsm
from tests.simulation.pods import CLUSTERS, IMAGES, REGISTRY, TARGET, DeployedPods
from tests.simulation.queue import DEDUPLICATION_SECONDS, SimulatedQueue
from tests.simulation.services import Answer, Refusal, arn_of
from tests.simulation.sqs import URL
from tests.simulation.table import Index, Table
from tests.simulation.world import World

CONFIG = Config()
CONTROL, DEAD, PREFIX = "signalbox-split-control", "dead-splits", CONFIG.temporary_queue_prefix
FOREIGN = PREFIX + "foreign"
REPLIES = "signalbox" + REPLY_MARK
# The parameters that deployed consumers read, and the queues in them.
PARAMETERS = {"/demo/memes": "memes", "/demo/orders": "orders.fifo"}
TARGETS = {**{f"ssm/{name}": queue for name, queue in PARAMETERS.items()}, TARGET: IMAGES}
# Two receives are the least that a queue may have.
MOST_RECEIVES = 4
DEVELOPERS, OTHERS, GROUPS = ("ann", "bob"), "others", 3
SILENT, UNKNOWN = "no sign of life since ", " has no session "

LONGEST_HELD_SECONDS = 900
READ_AGAIN_SECONDS, CALM_SECONDS, QUIET_SECONDS = 25, 3000, 1800
CONTROL_SECONDS, CONTROL_VISIBILITY = 30, 40
ENVIRONMENT = {
    "STAGE": "signalbox",
    "SPLIT_TABLE": "Splits",
    "HISTORY_STREAM": "history",
    "HISTORY_OVERFLOW_URL": URL + "overflow",
    "CONTROL_QUEUE_URL": URL + CONTROL,
    "SPLIT_DEAD_LETTER_QUEUE_URL": URL + DEAD,
    "SPLIT_FUNCTION_ARN": arn_of("lambda", "function:split"),
    "SPLIT_CONCURRENCY": str(CONFIG.split_concurrency),
    "TEMPORARY_QUEUE_PREFIX": PREFIX,
    "TEMPORARY_QUEUE_ARN_PREFIX": arn_of("sqs", PREFIX),
    "SPLIT_TIMEOUT_SECONDS": str(CONFIG.split_timeout_seconds),
    "SPLITTABLE_BUCKETS": "",
    "SPLIT_EMPTY_SECONDS": str(CONFIG.split_empty_seconds),
    "SPLIT_PARAMETER_SECONDS": str(CONFIG.split_parameter_seconds),
    "SPLIT_HEARTBEAT_SECONDS": str(CONFIG.split_heartbeat_seconds),
    "KUBERNETES_CLUSTERS": json.dumps(CLUSTERS),
}


@dataclass(frozen=True)
class Handled:
    """A message that a consumer has handled and deleted, with its queue and the time at which it was sent there."""

    at: float
    who: str
    body: str
    queue: SimulatedQueue
    sent_at: float


@dataclass
class SplittingAccount:
    """What producers sent, by body with its queue and group; what consumers handled, and when each was deployed."""

    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    handled: list[Handled] = field(default_factory=list)
    deployed: list[tuple[str, float]] = field(default_factory=list)
    sessions: int = 0
    lost: list[str] = field(default_factory=list)


@dataclass
class SessionCommands:
    """The commands of one session, which notes if the stage ends the session although it gets heartbeats.

    One that is not ready in time may end, and is known for some seconds then. `beats` are the signs of life that were
    answered, also those of earlier runs of the command: when each was sent and answered.
    """

    world: "SplittingWorld"
    control: ControlClient
    beats: list[tuple[float, float]]
    began: float | None = None
    was_ready: bool = False

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        at = self.world.kernel.now
        try:
            found = self.control.ask(command, fields, timeout=timeout)
        except CommandRejected as error:
            self._note(command, str(error))
            raise
        status = SessionStatus.parse(found)
        if status.has_ended:
            self._note(command, status.reason or "without a reason")
        else:
            self.began = self.began or at
            self.beats.append((at, self.world.kernel.now))
            self.was_ready = self.was_ready or status.phase == Phase.READY
        return found

    def _note(self, command: str, reason: str) -> None:
        if command != "heartbeat" or self.began is None:
            return
        now, longest = self.world.kernel.now, CONFIG.split_heartbeat_seconds
        if reason.startswith(SILENT):
            begin = datetime.fromisoformat(reason.removeprefix(SILENT)).timestamp()
            # The text has whole seconds. A sign of life after the longest silence is too late.
            is_lost = any(begin + 1 < sent and answered < begin + longest for sent, answered in self.beats)
        else:
            begin, silent = self.began, now - self.beats[-1][0]
            is_forgotten = UNKNOWN in reason and silent < REASON_KEPT_FOR.total_seconds()
            is_lost = (self.was_ready and silent < longest) or is_forgotten
        if is_lost and not self.world.was_away(begin, now):
            self.world.account.lost.append(reason)


class SplittingWorld(World):
    """A stage of splitting with its clients."""

    private = ('\\"group\\"',)
    services = ("sqs", "dynamodb", "firehose", "kubernetes", "ssm", "lambda")

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        self.fault_plan = replace(self.fault_plan, calm_for=CALM_SECONDS)
        self.account = SplittingAccount()
        self.has_deployments = self.kernel.draw("deployments") < 0.3
        self.drains_in_time = self.kernel.draw("drain time-out") > 0.3
        self.are_messages_held = self.kernel.draw("held messages") < 0.2
        self._make_resources()
        self._make_functions()
        self._make_clients()

    def _make_resources(self) -> None:
        self.dynamodb.tables["Splits"] = Table("Splits", "pk", "sk", {"by_kind": Index("kind", "pk")})
        self.parameters = SimulatedSsm(self.kernel)
        self.calls.services["ssm"] = self.parameters
        self._make(CONTROL, {"VisibilityTimeout": str(CONTROL_VISIBILITY), "MessageRetentionPeriod": "3600"})
        self._make(DEAD, {})
        self._make(
            REPLIES,
            {
                "VisibilityTimeout": str(round(REPLY_VISIBILITY.total_seconds())),
                "MessageRetentionPeriod": str(round(REPLY_RETENTION.total_seconds())),
            },
        )
        for queue in TARGETS.values():
            dead = f"dead-{queue}"
            self._make(dead, {})
            redrive = {"deadLetterTargetArn": arn_of("sqs", dead), "maxReceiveCount": MOST_RECEIVES}
            settings = {"VisibilityTimeout": "60", "MessageRetentionPeriod": "1209600"}
            self._make(queue, settings | {"RedrivePolicy": json.dumps(redrive)})
            self.limit(self.sqs.queues[queue])
        for parameter, queue in PARAMETERS.items():
            self.parameters("PutParameter", {"Name": parameter, "Value": URL + queue})
        self._make(FOREIGN, {})
        self.pods = DeployedPods(self, self._handle, self.end - QUIET_SECONDS)

    def _make(self, name: str, attributes: dict[str, str]) -> None:
        self.sqs("CreateQueue", {"QueueName": name, "Attributes": attributes | (ORDERED if is_fifo(name) else {})})

    def _make_functions(self) -> None:
        made = partial(self.function, environment=ENVIRONMENT, loops=True)
        splits = made("split", split.handler, timeout=CONFIG.split_timeout_seconds)
        controls = made("control", control.handler, timeout=CONTROL_SECONDS)
        self.calls.services["lambda"] = SimulatedLambda(self.kernel, self.sqs, {"split": splits})
        Mapping_(self.sqs.queues[CONTROL], controls, batch_size=1, concurrency=10)
        self.schedule(controls, {"task": control.RECONCILE}, 60)
        self.schedule(controls, {"task": control.STRAYS}, 1200)

    # Clients.

    def _make_clients(self) -> None:
        for parameter, queue in PARAMETERS.items():
            self.actor(f"consumer of {queue}", partial(self._consumer, parameter))
            if self.has_deployments:
                self.actor(f"deployment of {queue}", partial(self._deploy, parameter))
        for target, queue in TARGETS.items():
            self.actor(f"producer of {queue}", partial(self._producer, queue), after=1)
            for developer in DEVELOPERS:
                name = f"{developer} at {queue}"
                self.actor(name, partial(self._developer, name, developer, target), after=5)
        self.actor("administrator", self._apply)
        self.actor("owner", self.pods.own)

    def _control(self) -> ControlClient:
        kernel = self.kernel
        sqs, clock = shared_client("sqs"), lambda: kernel.now
        return ControlClient(sqs, URL + CONTROL, URL + REPLIES, clock=clock, sleep=kernel.sleep)

    def _apply(self) -> None:
        documents = [*(_registry(*one, drains_in_time=self.drains_in_time) for one in PARAMETERS.items()), REGISTRY]
        while True:
            try:
                self._control().ask("apply", {"documents": documents})
            except (SignalboxError, BotoCoreError, ClientError):
                self.kernel.sleep(5)
                continue
            return

    def _producer(self, queue: str) -> None:
        kernel, number = self.kernel, 0
        authors = (*DEVELOPERS, OTHERS)
        ids = deque[tuple[float, str]]()
        while kernel.now < self.end - QUIET_SECONDS:
            kernel.sleep(kernel.between(0.1, 1) if kernel.random() < 0.5 else kernel.between(1, 30))
            number += 1
            group, author = f"g{kernel.number(GROUPS)}", authors[kernel.number(len(authors))]
            body = json.dumps({"queue": queue, "number": number, "author": author, "group": group})
            once = ids.popleft()[1] if ids and kernel.now - ids[0][0] > DEDUPLICATION_SECONDS else f"{number}"
            order = {"MessageGroupId": group, "MessageDeduplicationId": once} if is_fifo(queue) else {}
            attributes = {"author": {"DataType": "String", "StringValue": author}}
            self.account.sent[body] = (queue, group)
            self._send(queue, MessageBody=body, MessageAttributes=attributes, **order)
            ids.append((kernel.now, once))

    def _send(self, queue: str, **message: Any) -> None:
        for _ in range(3):
            try:
                self.call("sqs", "SendMessage", QueueUrl=URL + queue, **message)
            except (Refusal, BotoCoreError):
                self.kernel.sleep(1)
                continue
            return

    def _consumer(self, parameter: str) -> None:
        kernel, url, read_at = self.kernel, "", 0.0
        while kernel.now < self.end:
            if kernel.now - read_at >= READ_AGAIN_SECONDS:
                url, read_at = self._read(parameter, url), kernel.now
            if not self._handle(f"consumer of {parameter}", url):
                is_busy = kernel.random() < 0.03 and kernel.now < self.faults_end  # with something else
                kernel.sleep(kernel.between(30, 180) if is_busy else 2)

    def _deploy(self, parameter: str) -> None:
        """Deploy the consumer now and then, so that it reads its original queue."""
        kernel = self.kernel
        while kernel.now < self.faults_end:
            kernel.sleep(kernel.between(50, 300))
            with suppress(Refusal, BotoCoreError):
                self.call("ssm", "PutParameter", Name=parameter, Value=URL + PARAMETERS[parameter], Overwrite=True)
            self.account.deployed.append((PARAMETERS[parameter], kernel.now))
            kernel.note(f"deploys {parameter}")

    def _read(self, parameter: str, before: str) -> str:
        try:
            answer = self.call("ssm", "GetParameter", Name=parameter)
        except (Refusal, BotoCoreError):
            return before
        return str(answer["Parameter"]["Value"])

    def _handle(self, who: str, url: str) -> bool:
        """Receive, handle and delete messages; return whether there were any."""
        try:
            names = ["SentTimestamp"]
            answer = self.call("sqs", "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=names)
        except (Refusal, BotoCoreError):
            self.kernel.sleep(1)
            return False
        unfinished = set[str]()
        for message in answer.get("Messages", ()):
            # Behind a message of its group that comes again, a message waits; in a standard queue, it may.
            group = json.loads(message["Body"])["group"]
            if group in unfinished or not self._finish(who, url, message):
                unfinished.add(group)
        return bool(answer.get("Messages"))

    def _finish(self, who: str, url: str, message: Answer) -> bool:
        """Handle a message, and return whether it was deleted."""
        self.kernel.sleep(self.kernel.between(0.01, 0.3))
        queue = self.sqs.queues.get(url.rpartition("/")[2])
        is_there = queue is not None and message["MessageId"] in queue.messages
        with suppress(Refusal, BotoCoreError):
            self.call("sqs", "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        if queue is None or message["MessageId"] in queue.messages:
            return False
        if not is_there:  # after the visibility time-out, another receiver has deleted it: SQS delivers it twice
            return True
        self.kernel.note(f"handles {message['Body']}")
        sent_at = int(message["Attributes"]["SentTimestamp"]) / 1000
        self.account.handled.append(Handled(self.kernel.now, who, message["Body"], queue, sent_at))
        return True

    def _developer(self, name: str, developer: str, target: str) -> None:
        kernel = self.kernel
        entry = {"queue_type": "SQS", "message_filter": {"author": f"^{developer}$"}}
        config, number = {"feature": {"split_queues": {"*": entry}}}, 0
        beats: list[tuple[float, float]] = []
        while kernel.now < self.end - QUIET_SECONDS:
            kernel.sleep(kernel.between(20, 400))
            if kernel.random() < 0.3:  # several at once
                kernel.sleep(-kernel.now % 60)
            request = SessionRequest(target, f"{developer}{number}", f"{developer}@laptop", config)
            commands = SessionCommands(self, self._control(), beats)
            client = SessionClient(commands, request, sleep=kernel.sleep, clock=lambda: kernel.now)
            try:
                number += self._use(name, client)
            except (SignalboxError, BotoCoreError, ClientError) as error:
                kernel.note(f"gives up: {error}")

    def _use(self, name: str, client: SessionClient) -> bool:
        """Start a session, consume for a time or wait in a debugger, and stop it or leave it; return if it stopped."""
        kernel = self.kernel
        is_paused = kernel.random() < 0.3
        status = client.start(timeout=timedelta(minutes=10))
        self.account.sessions += 1
        until, beat_at = kernel.now + kernel.between(30, 300), kernel.now
        while kernel.now < until:
            for queue in () if is_paused else status.queues:
                self._handle(name, queue.url)
            if kernel.now - beat_at >= 10:
                beat_at = kernel.now
                if client.heartbeat().has_ended:
                    return False
            kernel.sleep(1)
        for queue in status.queues if self.are_messages_held else ():
            with suppress(Refusal, BotoCoreError, ClientError):  # by a consumer that is killed
                hidden = kernel.number(LONGEST_HELD_SECONDS)
                self.call("sqs", "ReceiveMessage", QueueUrl=queue.url, VisibilityTimeout=hidden)
        is_stopped = kernel.random() < 0.8
        if is_stopped:
            client.stop()
        return is_stopped


def _registry(parameter: str, queue: str, *, drains_in_time: bool) -> dict[str, Any]:
    timeout = {} if drains_in_time else {"drainTimeout": 10}
    return {
        "apiVersion": "queues.mirrord.metalbear.co/v1",
        "kind": "MirrordSplitConfig",
        "metadata": {"name": queue.removesuffix(".fifo")},
        "spec": {
            "targetRef": {"apiVersion": "v1", "kind": "SsmParameter", "name": parameter},
            "queues": [{"id": queue.removesuffix(".fifo"), "kind": "sqs", "appConfig": {"queue": [{"env": "QUEUE"}]}}],
            **timeout,
        },
    }
