"""A program of Arvados' Python SDK: it follows events by commands on standard input, and prints each as a JSON line.

It runs in the SDK's own environment, and imports nothing of ours. Arguments: the URL of the WebSocket server, the
token, and the first filters as JSON. A command is a JSON object with one name: `subscribe` and `unsubscribe` with
filters, `send` with a text, or `close`.
"""

import json
import sys
from types import SimpleNamespace

import arvados.events


def show(event):
    """Print an event."""
    print(json.dumps(event), flush=True)


def main(url, token, filters):
    """Follow events until `close`."""
    # The part of an API client that `subscribe` uses; the real one reads it from the cluster's discovery document.
    api = SimpleNamespace(_rootDesc={"websocketUrl": url}, api_token=token)
    try:
        client = arvados.events.subscribe(api, json.loads(filters), show, poll_fallback=False)
    except Exception as error:  # noqa: BLE001 - of any library of the SDK
        show({"refused": str(error)})
        return
    for line in sys.stdin:
        ((name, value),) = json.loads(line).items()
        if name == "close":
            break
        if name == "send":
            client._client.send(value)
        else:
            getattr(client, name)(value)
    client.close(timeout=5)


if __name__ == "__main__":
    main(*sys.argv[1:])
