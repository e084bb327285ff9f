"""The emulator's front door: MiniStack behind a thin ASGI wrapper, started by `emulator.py` with the emulator's Python.

Adds to MiniStack what the local stage needs: stable URLs for the APIs, a health page that says whose emulator this is,
a WebSocket's subprotocol and the status that refuses it, a buffer for Firehose, and a root credential of its own
instead of the well-known ones.
"""

import contextvars
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

Scope = MutableMapping[str, Any]  # as ASGI defines it: untyped values
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

SUBPROTOCOL = "wamp.2.json"
HEALTH = "/_signalbox/health"
# MiniStack's own pages ask for no signature and can reset everything: only these of them are let through. A stack's
# custom resources and wait conditions answer at the last two, under an address that only they know.
OPEN_PAGES = ("/_ministack/health", "/_ministack/ready", "/_ministack/cfn-response/", "/_ministack/cfn-signal/")
CLOSED_PAGES = ("/_ministack/", "/_localstack/")
DELIVERY_SECONDS = 3.0  # how long Firehose gathers records here; on AWS the delivery stream says so
CONNECT = "CONNECT"  # MiniStack's word for what `$connect` is called with
FIRST_REFUSAL = 300  # of HTTP's statuses; those below let a connection begin
# What AWS allows with the permission for one message.
BATCHES = {
    f"sqs:{action}Batch": f"sqs:{action}" for action in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
}
# What AWS allows for the workgroup of the query in question. MiniStack does not look the query up, and asks for the
# permission for any; all of ours are in this workgroup.
ABOUT_QUERIES = ("athena:GetQueryExecution", "athena:GetQueryResults")
WORK_GROUP = "primary"
# In one statement: more makes it slower again.
ROWS_PER_INSERT = 100
# What the function at a WebSocket's `$connect` answered, in the task of that connection.
CONNECT_STATUS: contextvars.ContextVar[int] = contextvars.ContextVar("connect_status", default=200)
# After every invocation MiniStack waits so long for a first line on stderr, 50 ms by itself, before it answers.
LOG_WAIT_SECONDS = 0.005
# MiniStack looks through all messages of a queue, and all ids that it has seen, at each call: with thousands of them
# that takes longer than the call. Some of that may as well be done so often.
UPKEEP_SECONDS = 1.0
# What a message lacks last that did not come by SendMessage.
LAST_FIELDS = ("md5_body", "sys", "seq")


class Routes:
    """Stable path prefixes and the API paths that stand behind them, as the last deployment wrote them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._targets: dict[str, str] = {}

    def target(self, path: str) -> str | None:
        """Return the path that really answers for this one, or None if no prefix of ours begins it."""
        prefix, slash, rest = path.removeprefix("/").partition("/")
        target = self._current().get(prefix)
        return None if target is None else f"{target}{slash or '/'}{rest}"

    def _current(self) -> dict[str, str]:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return {}
        # The file is replaced, never edited, so its inode changes even within one tick of the clock.
        if (status.st_ino, status.st_mtime_ns) != self._seen:
            self._targets = json.loads(self._path.read_text())
            self._seen = (status.st_ino, status.st_mtime_ns)
        return self._targets


@dataclass(frozen=True, slots=True)
class Gateway:
    """MiniStack's ASGI application with our additions around it."""

    application: Application
    routes: Routes
    instance: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "http" and scope["path"] == HEALTH:
            await _answer(send, 200, {"status": "ok", "instance": self.instance})
        elif scope["type"] == "http" and is_closed(scope["path"]):
            await _answer(send, 403, {"message": "this page of the emulator is closed; use AWS calls"})
        elif scope["type"] == "http":
            await self.application(with_secure_transport(self._routed(scope)), receive, send)
        elif scope["type"] == "websocket":
            answering = refusing_by_status(choosing_subprotocol(scope, send))
            await self.application(self._routed(scope), receive, answering)
        else:
            await self.application(scope, receive, send)

    def _routed(self, scope: Scope) -> Scope:
        target = self.routes.target(scope["path"])
        if target is None:
            return scope
        raw = self.routes.target(scope["raw_path"].decode("latin-1")) or target
        return {**scope, "path": target, "raw_path": raw.encode("latin-1"), "method": _routable(scope)}


def _routable(scope: Scope) -> str | None:
    """Return the method in a form that reaches a route.

    MiniStack answers OPTIONS itself; API Gateway does so only for an API with a CORS configuration, which ours has
    not, and else lets the route answer.
    """
    method: str | None = scope.get("method")  # a WebSocket has none
    return "options" if method == "OPTIONS" else method


def is_closed(path: str) -> bool:
    """Tell whether this is a page of the emulator's own that works without a signature."""
    return path.startswith(CLOSED_PAGES) and not path.startswith(OPEN_PAGES)


def with_secure_transport(scope: Scope) -> Scope:
    """Mark a request as having come over TLS.

    Policies refuse plain HTTP (`aws:SecureTransport`), and on loopback there is no TLS and nobody to listen in: the
    policies are to be tested as they stand, so the emulator is told what a load balancer in front of it would tell.
    """
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    if any(name.lower() == b"x-forwarded-proto" for name, _ in headers):
        return scope
    return {**scope, "headers": [*headers, (b"x-forwarded-proto", b"https")]}


def choosing_subprotocol(scope: Scope, send: Send) -> Send:
    """Return a `send` that accepts with our subprotocol if it was offered; MiniStack accepts without choosing."""
    offered = SUBPROTOCOL in scope.get("subprotocols", ())

    async def choose(message: Message) -> None:
        if offered and message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message = {**message, "subprotocol": SUBPROTOCOL}
        await send(message)

    return choose


def refusing_by_status(send: Send) -> Send:
    """Return a `send` that refuses a WebSocket by the status that `$connect` answered, as API Gateway does.

    MiniStack closes, of which the server makes 403. AWS documents no text beside the status, so there is none here.
    """
    is_first = True

    async def refuse(message: Message) -> None:
        nonlocal is_first
        was_first, is_first = is_first, False
        status = CONNECT_STATUS.get()
        if not was_first or message["type"] != "websocket.close" or status < FIRST_REFUSAL:
            await send(message)
            return
        await send({"type": "websocket.http.response.start", "status": status, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b""})

    return refuse


def noting_status(invoke: Callable[..., Awaitable[Message | None]]) -> Callable[..., Awaitable[Message | None]]:
    """Return an `invoke` of the function of a WebSocket's route that notes the status which `$connect` answers."""

    async def invoked(*arguments: object, **named: object) -> Message | None:
        answer = await invoke(*arguments, **named)
        if CONNECT in arguments:
            CONNECT_STATUS.set(int((answer or {}).get("statusCode", 200)))
        return answer

    return invoked


Kept = dict[str, Any]  # a delivery stream, a destination of one, a queue or a message, as MiniStack keeps it
Record = tuple[str, bytes]  # its id and what it carries
Deliver = Callable[[Kept, Kept, list[Record]], None]


@dataclass(frozen=True, slots=True)
class Parcel:
    """The records for one destination of a delivery stream, with the account and region of the first call."""

    stream: Kept
    destination: Kept
    context: contextvars.Context
    payloads: list[bytes]


class DeliveryBuffer:
    """Firehose's buffer: AWS gathers records and writes one object of many.

    MiniStack writes one for each, as Parquet, before PutRecordBatch returns: two seconds when twenty callers wait.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._parcels: dict[tuple[str, str], Parcel] = {}

    def put(self, stream: Kept, destination: Kept, records: list[Record]) -> None:
        """Take records, as MiniStack's own delivery does."""
        with self._lock:
            key = (stream["arn"], destination["id"])
            if key not in self._parcels:
                self._parcels[key] = Parcel(stream, destination, contextvars.copy_context(), [])
            self._parcels[key].payloads.extend(payload for _, payload in records)

    def flush(self) -> None:
        """Deliver all that was gathered, as one record for each destination."""
        with self._lock:
            parcels, self._parcels = self._parcels, {}
        for parcel in parcels.values():
            records = [("gathered", b"".join(parcel.payloads))]
            parcel.context.run(self._deliver, parcel.stream, parcel.destination, records)

    def keep_flushing(self, every_seconds: float) -> None:
        """Flush for as long as the process lives."""
        while True:
            time.sleep(every_seconds)
            self.flush()


class QuickInserts:
    """A DuckDB connection with one statement for many rows: one for each, as MiniStack has it, takes 2 ms a row."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - only the emulator's environment has DuckDB
        self._connection = connection

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows by an `INSERT` that ends with the question marks for one."""
        insert, values, row = statement.partition(" VALUES ")
        for start in range(0, len(rows), ROWS_PER_INSERT):
            part = rows[start : start + ROWS_PER_INSERT]
            more = insert + values + ", ".join([row] * len(part))
            self._connection.execute(more, [value for one in part for value in one])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a connection has
        """Do all else as the connection itself."""
        return getattr(self._connection, name)


class UnpackedOnce(zipfile.ZipFile):
    """An archive that is unpacked where all can use it, and linked to from where it is wanted.

    MiniStack unpacks a function's code and packages for each process that it starts, some 1,500 files; on AWS they can
    only be read.
    """

    def extractall(self, path: Any = None, *others: Any, **named: Any) -> None:  # noqa: ANN401 - as it is there
        """Make this empty folder a link to what is in the archive."""
        wanted = Path(path or ".")
        shared = Path(tempfile.gettempdir()) / "unpacked" / self._content()
        if not shared.exists():
            self._unpack(shared, *others, **named)
        wanted.rmdir()
        wanted.symlink_to(shared, target_is_directory=True)

    def _content(self) -> str:
        """Return what tells it from archives of other files."""
        listed = repr([(file.filename, file.CRC, file.file_size) for file in self.infolist()])
        return hashlib.sha256(listed.encode()).hexdigest()

    def _unpack(self, shared: Path, *others: Any, **named: Any) -> None:  # noqa: ANN401 - as above
        shared.parent.mkdir(exist_ok=True)
        mine = Path(tempfile.mkdtemp(dir=shared.parent))
        super().extractall(mine, *others, **named)
        try:
            mine.rename(shared)
        except OSError:  # another did it at the same time
            shutil.rmtree(mine)


async def _answer(send: Send, status: int, body: dict[str, str]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def main(folder: Path, socket_number: int, lifeline: int | None = None) -> None:
    """Serve on an inherited socket until told to stop; the root credential arrives on standard input."""
    root = json.load(sys.stdin)
    if lifeline is not None:
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    with (folder / "lock").open("a+") as lock:
        _hold(lock)
        application = _ministack(root["access_key_id"])
        _serve(Gateway(application, Routes(folder / "routes.json"), root["instance"]), socket_number)


def _hold(lock: TextIO) -> None:
    """Hold the lock that says this emulator lives: the kernel lets it go however the process ends."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _end_with(lifeline: int) -> None:
    """End with all workers as soon as nobody holds the other end of this pipe: whoever started us is gone."""
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def _ministack(root_access_key_id: str) -> Application:
    from ministack.core import iam_evaluator, responses  # noqa: PLC0415 - only the emulator's environment has it

    # MiniStack takes `test`, any twelve digits and no key at all for root, without looking at the signature: with
    # that, enforcement would mean nothing. Root is one random key that never leaves the process which started us.
    iam_evaluator.is_root_access_key = lambda access_key_id: access_key_id == root_access_key_id
    iam_evaluator.enforce = as_aws_asks(iam_evaluator.enforce, responses.get_account_id)
    from ministack.app import app  # noqa: PLC0415 - after the changes above, since services copy the functions

    _buffer_deliveries()
    _shorten_log_wait()
    _unpack_once()
    _tell_refusals()
    _tell_senders()
    _quicken_queues()
    application: Application = app
    return application


def as_aws_asks(enforce: Callable[..., object], account_id: Callable[[], str]) -> Callable[..., object]:
    """Return an `enforce` that asks for the permission that AWS asks for, where MiniStack asks for another."""

    def enforced(
        access_key_id: str, iam_action: str, service: str, region: str, *others: object, **named: object
    ) -> object:
        if iam_action in ABOUT_QUERIES:
            named["resource_arn"] = f"arn:aws:athena:{region}:{account_id()}:workgroup/{WORK_GROUP}"
        return enforce(access_key_id, BATCHES.get(iam_action, iam_action), service, region, *others, **named)

    return enforced


def _buffer_deliveries() -> None:
    from ministack.services import firehose  # noqa: PLC0415 - only the emulator's environment has it

    buffer = DeliveryBuffer(firehose._deliver_records_to_s3)  # noqa: SLF001 - it has no setting for this
    firehose._deliver_records_to_s3 = buffer.put  # noqa: SLF001
    firehose.handle_request = on_the_spot(firehose._handle_request_sync)  # noqa: SLF001
    _quicken_inserts()
    threading.Thread(target=buffer.keep_flushing, args=(DELIVERY_SECONDS,), daemon=True).start()


def on_the_spot(handle: Callable[..., object]) -> Callable[..., Awaitable[object]]:
    """Return a handler that works where it is called.

    MiniStack has a thread for each call to Firehose, since delivering may ask the emulator itself for things. What is
    only put by asks nobody, and among many calls at once each thread is waited for, 40 ms instead of one.
    """

    async def handled(*request: object) -> object:
        return handle(*request)

    return handled


def _quicken_inserts() -> None:
    import duckdb  # noqa: PLC0415 - only the emulator's environment has it

    connect = duckdb.connect
    # Athena's connections name their database.
    duckdb.connect = lambda *named: connect(*named) if named else QuickInserts(connect())


def _shorten_log_wait() -> None:
    from ministack.core.lambda_runtime import Worker  # noqa: PLC0415 - only the emulator's environment has it

    drain = Worker._drain_stderr_bounded  # noqa: SLF001 - it has no setting for this
    Worker._drain_stderr_bounded = partialmethod(drain, first_line_wait=LOG_WAIT_SECONDS)  # noqa: SLF001


def _unpack_once() -> None:
    from ministack.core import lambda_runtime  # noqa: PLC0415 - only the emulator's environment has it

    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})


def _quicken_queues() -> None:
    from ministack.services import sqs  # noqa: PLC0415 - only the emulator's environment has it

    sqs._prune_dedup = at_most_every(UPKEEP_SECONDS, sqs._prune_dedup)  # noqa: SLF001 - it has no setting for this
    sqs._expire_retained = at_most_every(UPKEEP_SECONDS, sqs._expire_retained)  # noqa: SLF001
    sqs._ensure_msg_fields = unless_whole(sqs._ensure_msg_fields)  # noqa: SLF001


def at_most_every(
    seconds: float, keep_up: Callable[[Kept], None], *, now: Callable[[], float] = time.monotonic
) -> Callable[[Kept], None]:
    """Return what keeps a queue up, but for each no more often than that."""
    last: dict[int, float] = {}

    def kept_up(queue: Kept) -> None:
        moment = now()
        if moment - last.get(id(queue), -seconds) >= seconds:
            last[id(queue)] = moment
            keep_up(queue)

    return kept_up


def unless_whole(ensure_fields: Callable[[Kept], None]) -> Callable[[Kept], None]:
    """Return what adds the fields that a message lacks, and passes over messages that lack none."""

    def ensured(message: Kept) -> None:
        if not all(name in message for name in LAST_FIELDS):
            ensure_fields(message)

    return ensured


def _tell_refusals() -> None:
    from ministack.services import apigateway  # noqa: PLC0415 - only the emulator's environment has it

    apigateway._invoke_ws_lambda = noting_status(apigateway._invoke_ws_lambda)  # noqa: SLF001 - it has no hook


def _tell_senders() -> None:
    from ministack.core.iam_evaluator import caller_arn  # noqa: PLC0415 - only the emulator's environment has it
    from ministack.services import iam, lambda_svc, sqs  # noqa: PLC0415

    def user_id(name: str) -> str | None:
        user: dict[str, str] = iam._users.get(name) or {}  # noqa: SLF001 - it has no function for this
        return user.get("UserId")

    def role_id(name: str) -> str | None:
        role: dict[str, str] = iam._roles.get(name) or {}  # noqa: SLF001
        return role.get("RoleId")

    sqs._build_send_sys_attrs = with_senders(  # noqa: SLF001
        sqs._build_send_sys_attrs,  # noqa: SLF001
        caller_arn,
        user_id=user_id,
        role_id=role_id,
    )
    lambda_svc._run_sqs_batch = passing_senders(lambda_svc._run_sqs_batch)  # noqa: SLF001


def with_senders(
    build: Callable[..., dict[str, str]],
    caller_arn: Callable[[], str],
    *,
    user_id: Callable[[str], str | None],
    role_id: Callable[[str], str | None],
) -> Callable[..., dict[str, str]]:
    """Return a `build` of a message's attributes that tells which user, or session of which role, sent it, as on AWS.

    MiniStack tells the account.
    """

    def sender_id() -> str | None:
        kind, _, name = caller_arn().rpartition(":")[2].partition("/")
        if kind == "user":
            return user_id(name.rpartition("/")[2])
        role, _, session = name.partition("/")
        found = role_id(role) if kind == "assumed-role" else None
        return found and f"{found}:{session}"

    def built(*arguments: object) -> dict[str, str]:
        sender = sender_id()
        attributes = build(*arguments)
        return {**attributes, "SenderId": sender} if sender else attributes

    return built


def passing_senders(run: Callable[..., object]) -> Callable[..., object]:
    """Return a `run` of a function with messages whose event has the senders of the messages, too."""

    def passed(
        mapping: object, function: object, event: Message, batch: Sequence[Message], *others: object, **named: object
    ) -> object:
        senders = {message["id"]: message["sys"]["SenderId"] for message in batch if "sys" in message}
        for record in event["Records"]:
            record["attributes"]["SenderId"] = senders.get(record["messageId"], record["attributes"]["SenderId"])
        return run(mapping, function, event, batch, *others, **named)

    return passed


def _serve(gateway: Gateway, socket_number: int) -> None:
    # Much of the work for a call is HTTP, and this server does it in C: with hypercorn, which MiniStack brings, each
    # call takes half as long again.
    import uvicorn  # noqa: PLC0415 - only the emulator's environment has it

    config = uvicorn.Config(
        gateway,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_ping_interval=None,  # API Gateway does not ask whether its clients live
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    # Not by its number: of that alone uvicorn takes any socket for a Unix one, and then packets wait for others.
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=socket_number)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
