"""`signalbox rendezvous credentials`: the key of Snowflake clients, and the lines that configure them."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.aws.rendezvous.credentials import (
    ClientCredentials,
    client_credentials,
    client_key_ids,
    revoke_client_credentials,
)
from signalbox.cli.shared.confirmation import Yes, confirm
from signalbox.cli.shared.output import print_fields, print_json, print_line
from signalbox.cli.shared.stage import OutputOptions, say
from signalbox.errors import RejectedError
from signalbox.local.files import read_json, write_json
from signalbox.rendezvous.wire.bridge_line import STUN_SERVERS, bridge_lines
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT, Fingerprint

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

STUN_SERVER = re.compile(r"(stun:)?(?P<address>([\w.-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d+))?)")  # RFC 7064
PORTS, DEFAULT_PORT = range(1, 65536), 3478

Rotate = Annotated[
    bool, typer.Option("--rotate", help="Create a new key; the previous one stays valid until the next rotation.")
]
Revoke = Annotated[
    bool,
    typer.Option("--revoke", help="Delete all keys, so that no client can send; required before the stack is deleted."),
]
Stun = Annotated[
    list[str] | None,
    typer.Option(
        "--stun",
        help="STUN server for the client's NAT traversal; repeatable; default: upstream's public ones.",
        metavar="HOST:PORT",
    ),
]


def credentials(
    *,
    options: OutputOptions,
    rotate: Rotate = False,
    revoke: Revoke = False,
    yes: Yes = False,
    stun: Stun = None,
) -> None:
    """Print the settings of a Snowflake client: queue URL, encoded credentials, arguments and bridge lines."""
    if rotate and revoke:
        raise RejectedError("--rotate and --revoke exclude each other: a new key for clients, or none for any")
    servers = [_stun_url(server) for server in stun or STUN_SERVERS]
    deployment = options.deployment()
    if revoke:
        _revoke(deployment, yes=yes, as_json=options.as_json)
        return
    key = client_key(deployment, rotate=rotate)
    _record(deployment, key)
    _print_client(deployment, key, servers, as_json=options.as_json)


def client_key(deployment: "Deployment", *, rotate: bool = False) -> ClientCredentials:
    """Return the key of a stage's clients, and print that it is new if it is."""
    known = client_key_ids(deployment.session(), deployment.outputs)
    key = client_credentials(deployment.session(), deployment.outputs, rotate=rotate)
    if key.access_key_id not in known:
        previous = "; the previous one stays valid until the next rotation" if known else ""
        say(f"new key of the clients of {deployment.place}{previous}")
    return key


def _revoke(deployment: "Deployment", *, yes: bool, as_json: bool) -> None:
    known = len(client_key_ids(deployment.session(), deployment.outputs))
    if known:
        question = f"Delete {_keys(known)} of the clients of {deployment.place}? It cuts off every client at once."
        confirm(question, yes=yes, as_json=as_json)
    deleted = revoke_client_credentials(deployment.session(), deployment.outputs)
    if as_json:
        print_json({"deleted": deleted})
    else:
        print_line(f"{_keys(deleted)} of the clients of {deployment.place} deleted")


def _keys(count: int) -> str:
    return f"{count} key{'' if count == 1 else 's'}"


def _record(deployment: "Deployment", key: ClientCredentials) -> None:
    """Write the client's key to the local stage's file, if it has another one."""
    from signalbox.cli.shared.deployment import LOCAL
    from signalbox.clients.deployment import LocalDeployment

    if not isinstance(deployment, LocalDeployment):
        return
    path = deployment.folder / LOCAL.name
    local, document = read_json(path), key.document()
    if local is not None and local.get("client_credentials") != document:
        write_json(path, {**local, "client_credentials": document})


def _print_client(deployment: "Deployment", key: ClientCredentials, stun_servers: list[str], *, as_json: bool) -> None:
    queue_url = sqsqueue(deployment.outputs)
    lines = bridge_lines(
        fingerprints(deployment.outputs), queue_url=queue_url, sqscreds=key.sqscreds, stun_servers=stun_servers
    )
    shown = {
        "sqsqueue": queue_url,
        "sqscreds": key.sqscreds,
        "arguments": f"-sqsqueue {queue_url} -sqscreds {key.sqscreds} -ice {','.join(stun_servers)}",
        "bridge_line": lines[0],
    }
    # Upstream's client parses the queue's region from an amazonaws.com URL only (rendezvous_sqs.go).
    from signalbox.clients.deployment import LocalDeployment

    local = {}
    if isinstance(deployment, LocalDeployment):
        local["environment"] = f"AWS_ENDPOINT_URL_SQS={deployment.endpoint_url}"
    if as_json:
        print_json({**shown, "bridge_lines": lines, **local})
        return
    print_fields({**shown, **local})
    for line in lines[1:]:
        print_fields({"bridge_line": line})
    say(f"clients of {deployment.place}; they ask the STUN servers behind `ice` for their addresses (--stun: others)")


def _stun_url(server: str) -> str:
    found = STUN_SERVER.fullmatch(server)
    if found is None or int(found["port"] or DEFAULT_PORT) not in PORTS:
        raise RejectedError(f"--stun: expected HOST or HOST:PORT, not {server!r}")
    return f"stun:{found['address']}"


def fingerprints(outputs: Mapping[str, str]) -> list[Fingerprint]:
    """Return the fingerprints of the stage's bridge list; the default bridge of Snowflake first, if it is in it."""
    listed = [Fingerprint(each) for each in outputs.get("BridgeFingerprints", "").split(",") if each]
    return sorted(listed or [DEFAULT_FINGERPRINT], key=lambda each: each != DEFAULT_FINGERPRINT)


def sqsqueue(outputs: Mapping[str, str]) -> str:
    """Return the broker queue's URL in the only form that upstream's client accepts."""
    _, _, _, region, account, name = outputs["BrokerQueueArn"].split(":")
    return f"https://sqs.{region}.amazonaws.com/{account}/{name}"
