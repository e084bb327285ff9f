"""The local stage: the app deployed to the emulator, and `local.json`, the file with its URLs and credentials."""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from signalbox.aws.rendezvous.credentials import client_credentials
from signalbox.aws.shared.settings import BACKOFF
from signalbox.aws.shared.throttled_keys import retry_throttled_keys
from signalbox.clients.stage_session import stack_outputs
from signalbox.errors import RejectedError
from signalbox.local import cdk, eks
from signalbox.local.assembly import sources
from signalbox.local.assembly.current import current_stage, deployment_of, synthesized
from signalbox.local.emulator import lifecycle, program
from signalbox.local.emulator.lifecycle import REGION, Emulator
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.files import CHECKOUT, read_json, require_disk_space, write_json
from signalbox.local.live_users import REALM, live_users, start_functions
from signalbox.local.progress import step
from signalbox.local.stage_folder import StageFolder

DEFAULT_PORT = 4566
# Settings for a laptop, unless others are given: consumers and queues named `demo-…` can be split, and an exchange's
# queues named `q_demo…`; pauses for SQS's eventual consistency are short, since the emulator is consistent, and failed
# calls are soon tried again. Both doors of rendezvous are open.
LOCAL_SETTINGS = {
    "rendezvous_doors": "url,api",
    "splittable_queues": "demo-*,q_demo*",
    "splittable_targets": "lambda/demo-*,ecs/demo/demo-*,ssm/demo-*",
    "kubernetes_clusters": json.dumps({eks.NAME: {"eks": eks.NAME}}),
    "split_concurrency": "2",
    "split_timeout_seconds": "5",
    "split_empty_seconds": "3",
    "split_parameter_seconds": "2",
    "route_concurrency": "2",
    "route_timeout_seconds": "5",
    "route_retry_seconds": "5",
    "live_concurrency": "4",
    "live_timeout_seconds": "5",
}
# Outputs that local.json names.
NAMED_OUTPUTS = {
    "broker_queue_url": "BrokerQueueUrl",
    "history_bucket": "HistoryBucket",
    "exchange_control_queue_url": "ExchangeControlQueueUrl",
    "exchange_reply_queue_url": "ExchangeReplyQueueUrl",
    "exchange_prefix": "ExchangePrefix",
}
# The APIs by the path prefix of the endpoint: the output with the id of each, and the path in it.
API_PREFIXES = {
    "rendezvous-api": ("RendezvousApiId", "$default"),
    "live": ("LivePageApiId", "$default/live"),
    "live-ws": ("LiveWebSocketApiId", "live"),
}

# The doors of rendezvous by the path prefix of the endpoint: the output with the URL of each.
DOOR_PREFIXES = {"rendezvous": "RendezvousUrl", "rendezvous-clients": "RendezvousClientsUrl"}
FUNCTION_URL = ".lambda-url."


def up(
    stage_folder: StageFolder,
    *,
    port: int | None = None,
    context: Sequence[str] = (),
    fresh: bool = False,
    faults: int | None = None,
    app: Path = CHECKOUT,
    lifeline: int | None = None,
    assembly: Path | None = None,
    wake_live: bool = True,
) -> dict[str, Any]:
    """Start the stage, or update it to the app and these settings; return the contents of `local.json`.

    `faults` is the seed of fault injection. A running stage keeps its seed, and is left alone if it was deployed from
    the same sources; an emulator of another version is restarted with its state. Raises `RejectedError` if a setting is
    invalid, the port is in use, or the running stage has another seed; then nothing was changed, and nothing runs that
    did not run before. A given `assembly` is deployed without another synthesis.
    Without `wake_live`, the first client of live starts its functions, unless `start_live` does.
    """
    with _locked(stage_folder):
        # Checked before anything starts, so that an invalid setting or a used port costs no time.
        region = _region(context)
        running = lifecycle.running(stage_folder)
        chosen_port = _chosen_port(stage_folder, running, port=port, region=region, fresh=fresh)
        if running is not None and not fresh:
            faults = _kept_faults(running, faults)
        _check_emulator()
        require_disk_space(stage_folder.path)
        settings = local_context(context)
        digest = sources.digest(app, settings) if assembly is None else None
        if running is not None and not fresh:
            running = _upgraded(stage_folder, running, lifeline=lifeline)
            with step("compare the stage with its sources"):
                current = current_stage(stage_folder, running, digest)
            if current is not None:
                return current

        def start() -> Emulator:
            with step("start the emulator"):
                return lifecycle.start(stage_folder, port=chosen_port, region=region, lifeline=lifeline, faults=faults)

        def synthesize(folder: Path) -> None:
            with step("synthesize") as say:
                cdk.synthesize(folder, context=settings, say=say, app_folder=app)

        with _started_meanwhile(stage_folder, start if running is None else None) as starting:
            if digest is not None:
                synthesized(stage_folder.assembly, digest, synthesize)
        folder = assembly or stage_folder.assembly
        running = starting() if starting else start() if fresh or running is None else running
        with step("deploy") as say:
            eks.create_cluster(running.session())
            cdk.deploy(folder, emulator=running, say=say)
        local = _record(stage_folder, running, cdk.stacks(folder), digest=digest)
        if wake_live:
            start_live(local)
        return local


def _upgraded(stage_folder: StageFolder, running: Emulator, *, lifeline: int | None) -> Emulator:
    if running.version == lifecycle.version():
        return running
    with step("restart the emulator, which is of another version, with its state"):
        return lifecycle.restart(stage_folder, running, lifeline=lifeline)


def start_live(local: Mapping[str, Any]) -> None:
    """Start an instance of each function of live, so that a client joins within its ten seconds."""
    if "websocket_url" not in local:
        return
    with step("start the functions of live"):
        start_functions(local["websocket_url"], local["live_users"])


@contextmanager
def _started_meanwhile(
    stage_folder: StageFolder, start: Callable[[], Emulator] | None
) -> Iterator[Callable[[], Emulator] | None]:
    """Start the emulator while the block runs; yield the function that waits for it. A failed block stops it."""
    if start is None:
        yield None
        return
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(start)
        try:
            yield starting.result
        except BaseException:
            starting.exception()
            lifecycle.stop(stage_folder)
            raise


def local_context(context: Sequence[str]) -> list[str]:
    """Return the settings of a local stage: the given ones, and `LOCAL_SETTINGS` for the others."""
    given = {setting.partition("=")[0] for setting in context}
    local = [f"{name}={value}" for name, value in LOCAL_SETTINGS.items() if name not in given]
    return [*local, *context, "local=true"]


def _check_emulator() -> None:
    if not program.PYTHON.exists():
        raise RejectedError("the emulator is not installed: run `make up`, or python3 signalbox/local/setup.py")


def down(stage_folder: StageFolder) -> bool:
    """Stop the stage and delete its state; return whether it was running."""
    with _locked(stage_folder):
        return lifecycle.stop(stage_folder)


@contextmanager
def _locked(stage_folder: StageFolder) -> Iterator[None]:
    """Hold the lock that lets one command at a time start or stop the stage."""
    stage_folder.emulator.mkdir(parents=True, exist_ok=True)
    with (stage_folder.path / "deploy.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RejectedError(
                f"another command is starting or stopping the stage in {str(stage_folder.path)!r}"
            ) from error
        yield


def _chosen_port(
    stage_folder: StageFolder, running: Emulator | None, *, port: int | None, region: str, fresh: bool
) -> int:
    """Return the port to use. Raises `RejectedError` if a running stage would have to be replaced without `fresh`."""
    if running is None:
        chosen = DEFAULT_PORT if port is None else port
        lifecycle.check_port(stage_folder, chosen)
        return chosen
    if not fresh and port not in (None, running.port):
        raise RejectedError(f"the stage runs on port {running.port}; to move it, run `make down` first, or use --fresh")
    if not fresh and region != running.region:
        raise RejectedError(f"the stage runs in {running.region}; to move it, run `make down` first, or use --fresh")
    return running.port if port is None else port


def _kept_faults(running: Emulator, faults: int | None) -> int | None:
    """Return the running stage's seed of fault injection. Raises `RejectedError` if another is given."""
    if faults is not None and faults != running.faults:
        present = "no fault injection" if running.faults is None else f"fault injection of seed {running.faults}"
        raise RejectedError(f"the stage runs with {present}; to change it, run `make down` first, or use --fresh")
    return running.faults


def _region(context: Sequence[str]) -> str:
    """Return the region of the settings; an emulator serves one."""
    settings = dict(setting.partition("=")[::2] for setting in context)
    return settings.get("region", REGION)


def _record(
    stage_folder: StageFolder, running: Emulator, stacks: Sequence[str], *, digest: str | None
) -> dict[str, Any]:
    """Write `routes.json` for the gateway and `local.json` for clients; return the contents of the latter."""
    session = running.session()
    retry_throttled_keys(session.events, BACKOFF)
    outputs = _outputs(session, stacks)
    write_json(stage_folder.routes, api_routes(outputs))
    local = {
        "endpoint_url": running.endpoint_url,
        "region": running.region,
        "account": ACCOUNT,
        "faults": running.faults,
        **_of_rendezvous(session, outputs, running.endpoint_url),
        **_of_live(session, outputs, running.endpoint_url, known=read_json(stage_folder.local) or {}),
        **{name: outputs[output] for name, output in NAMED_OUTPUTS.items() if output in outputs},
        "admin_credentials": {
            "access_key_id": running.administrator.access_key_id,
            "secret_access_key": running.administrator.secret_access_key,
        },
        "outputs": outputs,
        "deployment": deployment_of(session, stacks, digest),
    }
    write_json(stage_folder.local, local)
    return local


def _of_rendezvous(session: boto3.Session, outputs: Mapping[str, str], endpoint_url: str) -> dict[str, Any]:
    if "ClientUserName" not in outputs:
        return {}
    credentials = client_credentials(session, outputs).document()
    urls = {f"{prefix.replace('-', '_')}_url": f"{endpoint_url}/{prefix}/" for prefix in DOOR_PREFIXES}
    urls = urls if "RendezvousUrl" in outputs else {}  # not of a front
    return {**urls, "client_credentials": credentials}


def _of_live(
    session: boto3.Session, outputs: Mapping[str, str], endpoint_url: str, *, known: Mapping[str, Any]
) -> dict[str, Any]:
    if "LiveTable" not in outputs:
        return {}
    with step("create the users of live"):
        users = live_users(session, outputs, known=known)
    return {
        "websocket_url": f"{endpoint_url.replace('http', 'ws', 1)}/live-ws",
        "page_url": f"{endpoint_url}/live/",
        "realm": REALM,
        "live_users": users,
    }


def _outputs(session: boto3.Session, stacks: Sequence[str]) -> dict[str, str]:
    """Return the outputs of all stacks, without those for references between stacks."""
    found = [stack_outputs(session, stack) for stack in stacks]
    return {key: value for outputs in found for key, value in outputs.items() if not key.startswith("ExportsOutput")}


def api_routes(outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the emulator's path of the API, or of the function URL, for each path prefix."""
    apis = {
        prefix: f"/_aws/execute-api/{outputs[output]}/{path}"
        for prefix, (output, path) in API_PREFIXES.items()
        if output in outputs
    }
    return apis | {prefix: _door(outputs[name]) for prefix, name in DOOR_PREFIXES.items() if name in outputs}


def _door(url: str) -> str:
    name = url.removeprefix("https://").partition(".")[0]
    return f"/_aws/lambda-url/{name}" if FUNCTION_URL in url else f"/_aws/execute-api/{name}/$default"
