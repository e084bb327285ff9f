"""The emulator's lifecycle: started in the background on loopback, found again, stopped with all its workers."""

import fcntl
import hashlib
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import boto3

from signalbox.clients.stage_session import LocalSession
from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.emulator.program import ADMINISTRATOR, HOST, PYTHON, environment, spawn
from signalbox.local.files import CHECKOUT, read_json, write_json
from signalbox.local.processes import is_alive, processes_naming
from signalbox.local.stage_folder import StageFolder

REGION = "us-east-1"
START_SECONDS = 60
STOP_SECONDS = 5
SAVE_SECONDS = 120
NOT_SAVED = re.compile(r"Persistence: (failed|error)")  # MiniStack ends nevertheless
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key that signs AWS calls."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator and the credentials of its administrator."""

    port: int
    instance: str
    region: str
    administrator: Credentials
    faults: int | None = None
    """The seed of fault injection."""
    version: str = ""

    @property
    def endpoint_url(self) -> str:
        """The URL for AWS calls."""
        return f"http://{HOST}:{self.port}"

    def session(self) -> boto3.Session:
        """Return a session of the administrator."""
        return LocalSession(self.endpoint_url, region=self.region, **asdict(self.administrator))


def version() -> str:
    """Return a digest of the emulator's environment and of our parts of it."""
    folders = (Path(__file__).parent, CHECKOUT / "tests" / "fault_injection")
    ours = sorted(path for folder in folders for path in folder.rglob("*.py"))
    digest = hashlib.sha256()
    for path in (*ours, PYTHON.parents[1] / "stamp"):
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def running(stage_folder: StageFolder) -> Emulator | None:
    """Return the emulator of this stage if it runs and responds."""
    if process_id(stage_folder) is None:
        return None
    found = read_json(stage_folder.running)
    if found is None:
        return None
    emulator = Emulator(**{**found, "administrator": Credentials(**found["administrator"])})
    return emulator if _instance(emulator.port) == emulator.instance else None


def process_id(stage_folder: StageFolder) -> int | None:
    """Return the id of the process that holds the emulator's lock; the lock file may remain after it."""
    try:
        with stage_folder.lock.open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return int(stage_folder.lock.read_text() or 0) or None
    return None


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield the lifeline of an emulator that ends with the block, and also when this process is killed."""
    reading, held = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(held)


def start(
    stage_folder: StageFolder,
    *,
    port: int,
    region: str = REGION,
    lifeline: int | None = None,
    faults: int | None = None,
) -> Emulator:
    """Stop this stage's emulator, start a new one on the port (0: any free port) and wait until it responds.

    With a `lifeline`, the reading end of a pipe, the emulator ends when the other end is closed. `faults` is the
    seed of fault injection. Raises `RejectedError` if the port is in use, and `UnavailableError` with the end
    of the log if the emulator does not start.
    """
    stop(stage_folder)
    instance = secrets.token_hex(8)
    with _listening_socket(port) as listener:
        chosen: int = listener.getsockname()[1]
        root = _start(stage_folder, listener, instance=instance, region=region, lifeline=lifeline, faults=faults)
    administrator = _administrator(f"http://{HOST}:{chosen}", root, region=region)
    emulator = Emulator(chosen, instance, region, administrator, faults, version())
    write_json(stage_folder.running, asdict(emulator))
    return emulator


def restart(stage_folder: StageFolder, emulator: Emulator, *, lifeline: int | None = None) -> Emulator:
    """End this stage's emulator and start the present version on its port, with its state and administrator.

    Raises `UnavailableError` if the state could not be saved, or the new emulator does not start.
    """
    _save(stage_folder)
    new = replace(emulator, instance=secrets.token_hex(8), version=version())
    with _listening_socket(new.port) as listener:
        _start(stage_folder, listener, instance=new.instance, region=new.region, lifeline=lifeline, faults=new.faults)
    shutil.rmtree(stage_folder.services)  # the emulator has read them, and they have secrets
    write_json(stage_folder.running, asdict(new))
    return new


def _start(
    stage_folder: StageFolder,
    listener: socket.socket,
    *,
    instance: str,
    region: str,
    lifeline: int | None,
    faults: int | None,
) -> Credentials:
    """Start the emulator, wait until it responds, and return its root."""
    for folder in (stage_folder.temporary, stage_folder.services, stage_folder.objects):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stage_folder.emulator.chmod(0o700)  # its log has requests and what functions print
    root = Credentials(f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(30))
    port: int = listener.getsockname()[1]
    inherited = [listener.fileno(), *([] if lifeline is None else [lifeline])]
    secret = {"access_key_id": root.access_key_id, "instance": instance, "faults": faults}
    try:
        process = spawn(stage_folder, inherited, environment(stage_folder, port=port, region=region), secret=secret)
        _wait_for(process, stage_folder, port=port, instance=instance)
    except BaseException:
        stop(stage_folder)
        raise
    return root


def check_port(stage_folder: StageFolder, port: int) -> None:
    """Raise `RejectedError` if the port is in use, unless by this stage's own emulator, which `start` replaces."""
    if process_id(stage_folder) is None:
        _listening_socket(port).close()


def _listening_socket(port: int) -> socket.socket:
    """Listen on the port before anything else happens, so that no other process can take it in between."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(100)
    except OSError as error:
        listener.close()
        raise RejectedError(
            f"port {port} of {HOST} is taken ({error.strerror}); stop what uses it (in another checkout: make down) "
            f'or choose another: make up ARGS="--port {port + 1}"'
        ) from error
    return listener


def _wait_for(process: subprocess.Popen[str], stage_folder: StageFolder, *, port: int, instance: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while _instance(port) != instance:
        if process.poll() is not None or time.monotonic() > deadline:
            lines = stage_folder.log.read_text().splitlines()[-20:]
            raise UnavailableError("\n".join(["the emulator did not start; the end of its log:", *lines]))
        time.sleep(0.05)


def _instance(port: int) -> str | None:
    """Return the instance id of the emulator that responds at this port, if any."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/_signalbox/health")
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return answer.get("instance") if isinstance(answer, dict) else None


def _administrator(endpoint_url: str, root: Credentials, *, region: str) -> Credentials:
    """Create the user for all further calls: the emulator checks the signature of a user, but not that of root."""
    iam = LocalSession(endpoint_url, region=region, **asdict(root)).client("iam")
    iam.create_user(UserName=ADMINISTRATOR)
    iam.put_user_policy(UserName=ADMINISTRATOR, PolicyName="anything", PolicyDocument=json.dumps(ANYTHING))
    key = iam.create_access_key(UserName=ADMINISTRATOR)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


def stop(stage_folder: StageFolder) -> bool:
    """Kill the emulator and its workers, and delete its state; return whether any process was running."""
    leader = _leader(stage_folder)
    if leader is not None:
        os.killpg(leader, signal.SIGKILL)
    workers = _kill_workers(stage_folder)
    _wait_until_gone([*workers, *([leader] if leader else [])])
    _delete_files(stage_folder)
    return leader is not None or bool(workers)


def _save(stage_folder: StageFolder) -> None:
    """End the emulator and its workers, and let it save its state. Raises `UnavailableError` if it did not save all."""
    leader = _leader(stage_folder)
    if leader is not None:
        os.kill(leader, signal.SIGTERM)
        # Its lock is free later than its main thread has ended, and the next emulator takes the lock.
        _wait_until(lambda: process_id(stage_folder) is None, f"the emulator, {leader}, does not end", SAVE_SECONDS)
    _wait_until_gone(_kill_workers(stage_folder))
    failed = [line for line in stage_folder.log.read_text().splitlines() if NOT_SAVED.search(line)]
    if failed or not any(stage_folder.services.glob("*.json")):
        raise UnavailableError("\n".join(["the emulator did not save its state: `make up` starts without it", *failed]))


def _leader(stage_folder: StageFolder) -> int | None:
    """Return the id of the emulator to end, by its command line, too: a number in a file proves nothing."""
    holder = process_id(stage_folder)
    return holder if holder in processes_naming(str(stage_folder.emulator)) else None


def _kill_workers(stage_folder: StageFolder) -> list[int]:
    # The command line of a worker names a file in the temporary folder: this also finds those of a killed emulator.
    workers = processes_naming(f"{stage_folder.temporary}{os.sep}")
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    return workers


def _wait_until_gone(processes: list[int]) -> None:
    what = f"processes of the emulator that do not end: {processes}"
    _wait_until(lambda: not any(map(is_alive, processes)), what, STOP_SECONDS)


def _wait_until(is_over: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > deadline:
            raise UnavailableError(what)
        time.sleep(0.01)


def _delete_files(stage_folder: StageFolder) -> None:
    """Delete the stage's files except the emulator's environment, which is in the same folder by default."""
    of_emulator = (stage_folder.running, stage_folder.routes, stage_folder.clusters, stage_folder.outages)
    files = (stage_folder.local, *of_emulator, stage_folder.lock)
    for path in files:
        path.unlink(missing_ok=True)
    for folder in (stage_folder.temporary, stage_folder.services, stage_folder.objects, stage_folder.users):
        shutil.rmtree(folder, ignore_errors=True)
