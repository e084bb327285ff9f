"""Starts and stops the containers of an Arvados cluster by events; `dispatch.py --help` lists the options.

Run it any number of times: all share a queue. `{}` in the commands is the container's UUID and the number of its lock,
so that a repeated start is refused, as by `systemd-run --unit {}`. The cluster is that of ARVADOS_API_URL and _TOKEN.
"""

import argparse
import json
import os
import re
import subprocess
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import find_deployment

CONTAINER = re.compile("[a-z0-9]{5}-dz642-[a-z0-9]{15}")  # an event has any text: this is in URLs and commands


def call(method: str, container: str) -> Any:
    """Send a request about a container to the cluster."""
    url = f"{os.environ['ARVADOS_API_URL']}/arvados/v1/containers/{container}"
    request = Request(url, b"", {"Authorization": f"Bearer {os.environ['ARVADOS_API_TOKEN']}"}, method=method)
    with urlopen(request, timeout=30) as answer:
        return json.load(answer)


def handle(uuid: str, start: str, stop: str) -> None:
    """Start or stop a container according to its present state in Arvados; repeating it is harmless."""
    found = call("GET", uuid)
    if found["state"] == "Queued" and found["priority"] > 0:
        try:
            found = call("POST", f"{uuid}/lock")
        except HTTPError:  # another worker has locked it, or its request was cancelled
            found = call("GET", uuid)
    if found["state"] == "Locked" and found["priority"] > 0:
        subprocess.run(start.format(f"{uuid}-{found['lock_count']}").split(), check=False)
        found = call("GET", uuid)
    if found["state"] in ("Locked", "Running") and found["priority"] == 0:
        found = call("PUT", f"{uuid}?container=%7B%22state%22%3A%22Cancelled%22%7D")
    if found["state"] == "Cancelled":
        subprocess.run(stop.format(f"{uuid}-{found['lock_count']}").split(), check=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("exchange", "queue", "user", "start", "stop"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    client = client_of(find_deployment(), user=options.user)
    client.declare_queue(options.queue)
    for event in ("queued", "cancelled"):
        client.bind(options.exchange, options.queue, f"container.*.*.{event}")
    with client.consumer(options.queue) as consumer:
        for message in consumer:
            if found := CONTAINER.search(message.delivered.body):
                handle(found[0], options.start, options.stop)
            consumer.ack(message)
