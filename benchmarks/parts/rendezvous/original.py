"""Upstream's programs, built from its published Go module: the broker, and a client that reports its times."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.shared.sides import Side
from benchmarks.shared.stage import FOLDER
from signalbox.errors import UnavailableError
from signalbox.local import tools

SOURCE = Path(__file__).with_name("upstream")
MODULE = "gitlab.torproject.org/tpo/anti-censorship/pluggable-transports/snowflake/v2"
START_SECONDS = 20
BUILD_SECONDS = 600  # the first build downloads about a hundred modules
RELAY_PATTERN = "snowflake.torproject.net$"
# The shortest that proxies follow: with upstream's default, 20 s, a third of them wait, too few for a burst.
POLL_MILLISECONDS = 1000


class NoGo(UnavailableError):
    """Raised when upstream's programs cannot be built on this machine."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The paths of upstream's programs, and the versions of their module and of Go."""

    broker: Path
    client: Path
    versions: str


def build() -> Programs:
    """Build both programs. Raises `NoGo` with the reason."""
    broker = FOLDER / "upstream" / "broker"
    _go("build", "-o", str(broker), f"{MODULE}/broker")
    versions = f"{_go('list', '-m', MODULE).split()[1]}, {_go('env', 'GOVERSION').strip()}"
    return Programs(broker, build_client(), versions)


def build_client() -> Path:
    """Build only the client. Raises `NoGo`."""
    client = FOLDER / "upstream" / "client"
    _go("build", "-o", str(client), ".")
    return client


def build_transport() -> Path:
    """Build upstream's client program, which Tor runs. Raises `NoGo`."""
    transport = FOLDER / "upstream" / "transport"
    _go("build", "-o", str(transport), f"{MODULE}/client")
    return transport


def _go(*arguments: str) -> str:
    try:
        command = [str(tools.go()), *arguments]
        return subprocess.run(
            command, cwd=SOURCE, capture_output=True, text=True, check=True, timeout=BUILD_SECONDS
        ).stdout
    except UnavailableError as error:
        raise NoGo(str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise NoGo(f"go {arguments[0]} took longer than {BUILD_SECONDS} s") from error
    except subprocess.CalledProcessError as error:
        raise NoGo(f"go {arguments[0]} failed: {error.stderr.strip()[-300:]}") from error


@contextmanager
def running_broker(programs: Programs, side: Side, *, endpoint_url: str | None = None) -> Iterator[Side]:
    """Run the broker on loopback and yield its side; its AWS calls go to `endpoint_url` if given."""
    port = _free_port()
    with (FOLDER / "upstream" / "broker.log").open("w") as log:
        process = subprocess.Popen(
            _command(programs, side, port=port),
            env=_environment(side, endpoint_url or side.endpoint_url),
            cwd=FOLDER,
            stdout=log,
            stderr=log,
        )
        try:
            url = f"http://127.0.0.1:{port}/"
            _wait_for(process, f"{url}robots.txt")
            yield side.with_broker(url)
        finally:
            process.terminate()
            process.wait()


def _command(programs: Programs, side: Side, *, port: int) -> list[str]:
    intervals = FOLDER / "upstream" / "poll-intervals.json"
    pools = ("unrestricted_poll_interval", "restricted_poll_interval")
    intervals.write_text(json.dumps(dict.fromkeys(pools, POLL_MILLISECONDS)))
    return [
        str(programs.broker),
        *("-addr", f"127.0.0.1:{port}", "-disable-tls", "-disable-geoip"),
        *("-allowed-relay-pattern", RELAY_PATTERN),
        *("-poll-interval-filepath", str(intervals)),
        *("-broker-sqs-name", side.queue_name, "-broker-sqs-region", side.region),
    ]


def _environment(side: Side, endpoint_url: str) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(FOLDER),
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ACCESS_KEY_ID": side.access_key_id,
        "AWS_SECRET_ACCESS_KEY": side.secret_access_key,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError("upstream's broker did not start; see broker.log") from error
            time.sleep(0.05)
