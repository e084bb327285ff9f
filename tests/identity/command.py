"""Runs the test provider for the local stage of this folder, until it is interrupted."""

import argparse
import json
import signal
import sys
from pathlib import Path

from signalbox.local.stage_folder import find_stage_folder
from tests.identity.provider import CLIENT, running

PORT = 4570
ENDS = {signal.SIGINT, signal.SIGTERM}


def main() -> None:
    """Start the provider, and print the command by which the trial realm trusts it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help="port on 127.0.0.1; 0 for any free one")
    port = parser.parse_args().port
    local = json.loads(find_stage_folder(Path.cwd()).local.read_text())
    page, realm = local["page_url"], local["realm"]
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    with running(port=port, pages=[page, f"{page}renewed.html"]) as provider:
        options = f"--issuer {provider.url} --audience {provider.audience} --client-id {CLIENT} --role-claim role"
        sys.stdout.write(
            f"The provider runs at {provider.url} with the users {', '.join(provider.users)}; it takes any password.\n"
            f"Trust it: .venv/bin/signalbox exchange declare {realm} --live {options}\n"
            f"Sign in at {page}, or with `.venv/bin/signalbox tail TOPIC --sign-in`. Ctrl-C ends the provider.\n"
        )
        sys.stdout.flush()
        signal.sigwait(ENDS)


if __name__ == "__main__":
    main()
