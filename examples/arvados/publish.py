"""Publishes the events of one running container as an Arvados cluster would: `python publish.py --seconds 20`.

It publishes over SQS, which requires permission to send to the exchange's queue and no WebSocket. This example is the
administrator of the local stage of this folder; a cluster has a user of the role `source` and an exchange of its own.
"""

import argparse
import sys
import time
from collections.abc import Iterator

from topics import (
    Publication,
    container_log,
    container_state,
    permissions_updated,
    record_changed,
    system_log,
)

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import find_deployment

OWNER, COLLECTION = "zzzzz-j7d0g-0123456789abcde", "zzzzz-4zz18-0123456789abcde"
LINES_A_SECOND = 10
STEPS = ("reading the reference", "aligning reads", "sorting", "calling variants")


def story(owner: str, container: str, seconds: float) -> Iterator[tuple[float, Publication]]:
    """Yield the publications about a container, each with the seconds to wait before it."""
    yield from ((0, one) for one in container_state(owner, container, "Queued"))
    yield 0, system_log("keep0", "keepstore", "info", "cleared 3 blocks")
    yield from ((0, one) for one in container_state(owner, container, "Running", progress=0))
    warn_every = 25
    lines = max(round(seconds * LINES_A_SECOND), len(STEPS))
    for number in range(lines):
        step = STEPS[number * len(STEPS) // lines]
        yield seconds / lines, container_log(owner, container, "stdout", f"{number + 1}/{lines} {step}")
        if (number + 1) % warn_every == 0:
            yield (
                0,
                container_log(owner, container, "stderr", f"WARNING: read {number} has {number % 9 + 1} mismatches"),
            )
            yield from ((0, one) for one in container_state(owner, container, "Running", progress=number / lines))
    made = record_changed("collection", owner, COLLECTION, event="create", changed={"name": f"output of {container}"})
    yield from ((0, one) for one in made)
    yield 0, permissions_updated(generation=7)
    yield from ((0, one) for one in container_state(owner, container, "Complete", progress=1))


def main() -> int:
    """Publish the events of one container and print their number."""
    arguments = _arguments()
    publications = list(story(arguments.owner, arguments.container, arguments.seconds))
    client = client_of(find_deployment())
    for pause, one in publications:
        time.sleep(pause)
        client.publish(arguments.exchange, f"{arguments.prefix}{one.topic}", one.body, one.headers)
    print(f"{len(publications)} messages about {arguments.container}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exchange", default="xtrial.fifo", help="a live exchange")
    parser.add_argument("--prefix", default="trial.", help="the prefix of all topics")
    parser.add_argument("--owner", default=OWNER, help="UUID of the project that owns the container request")
    parser.add_argument("--container", default="zzzzz-dz642-0123456789abcde", help="UUID of the container")
    parser.add_argument("--seconds", type=float, default=20, help="how long the container runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
