"""sr3 from PyPI in a virtual environment, with our driver installed next to it."""

import fcntl
import hashlib
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from signalbox.cli.exchange.stage import stage_name
from signalbox.clients.deployment import Deployment
from signalbox.local import setup
from signalbox.local.files import CHECKOUT
from signalbox.sarracenia.broker_url import BrokerAccount
from signalbox.sarracenia.rights.names import parse_user_name
from tests import wheels
from tests.integration.live.page import WorkingFolder

SR3 = "metpx-sr3[ftppoll]==3.3.1"
FTP_SERVER = "pyftpdlib==2.2.0"
DRIVER = CHECKOUT / "packages" / "signalbox-sr3"
EXAMPLES = CHECKOUT / "examples" / "sarracenia"
EXAMPLE_URL = re.compile(r"amqpsqs://alice@sqs\.ca-central-1\.amazonaws\.com/signalbox")
FOLDER = CHECKOUT / ".signalbox" / "sr3"
VENV = FOLDER / "venv"
COMMAND_SECONDS = 240
STOP_SECONDS = 240


def environment() -> Path:
    """Return sr3's virtual environment, created once, with the current packages of this checkout.

    They are installed again only if a wheel changed, since another process may be running sr3 from them.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = [wheels.wheel(FOLDER / "build"), wheels.wheel(FOLDER / "build-driver", DRIVER)]
        stamp = setup.stamp(VENV, [CHECKOUT / "pyproject.toml", DRIVER / "pyproject.toml", Path(__file__)])
        if not setup.is_current(VENV, stamp):
            shutil.rmtree(VENV, ignore_errors=True)
            wheels.uv("venv", VENV)
            wheels.uv("pip", "install", "--python", _program("python"), SR3, DRIVER, FTP_SERVER)
            (VENV / "stamp").write_text(stamp)
        if _digest(built) != _installed():
            wheels.uv("pip", "install", "--python", _program("python"), "--no-deps", "--reinstall", *built)
        (VENV / "packages").write_text(_digest(built))
    return VENV


def _digest(built: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(wheel.read_bytes() for wheel in built)).hexdigest()


def _installed() -> str | None:
    """Return the digest of the installed wheels; None if none was noted."""
    noted = VENV / "packages"
    return noted.read_text() if noted.exists() else None


def _program(name: str) -> Path:
    return VENV / "bin" / name


@contextmanager
def new_user(desk: WorkingFolder, deployment: Deployment, prefix: str) -> Iterator[BrokerAccount]:
    """Add a user by the command, and remove it afterwards; yield the stage as the user's broker."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    key = json.loads(desk.run("user", "add", name, "--role", "source", "--json"))
    host, queue = urlsplit(deployment.endpoint_url or "").netloc, deployment.outputs["ExchangeControlQueueUrl"]
    yield BrokerAccount(
        parse_user_name(name),
        host,
        stage_name(queue),
        key["access_key_id"],
        key["secret_access_key"],
        deployment.region,
    )
    desk.run("user", "remove", name, "--yes")


@dataclass(frozen=True, slots=True)
class Sr3:
    """An sr3 installation of one user, with its own home directory and the configurations of the examples."""

    home: Path
    broker: BrokerAccount
    exchange: str

    @classmethod
    def configured(cls, home: Path, broker: BrokerAccount, *, exchange: str, **changes: str) -> "Sr3":
        """Copy the examples for a broker; `changes` maps pieces of their text to replacements."""
        folder = home / ".config" / "sr3"
        for path in EXAMPLES.glob("*/*.conf"):
            text = EXAMPLE_URL.sub(broker.url, path.read_text())
            for old, new in {**changes, "xs_alice": exchange}.items():
                text = text.replace(old, new)
            written = folder / path.relative_to(EXAMPLES)
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text)
        credentials = folder / "credentials.conf"
        credentials.touch(mode=0o600)
        credentials.write_text(f"{broker.url_with_key}\n")
        for name in ("in", "out"):
            (home / "weather" / name).mkdir(parents=True)
        return cls(home, broker, exchange)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return sr3's environment variables, which contain no AWS settings of this machine."""
        user = pwd.getpwuid(os.getuid()).pw_name  # sr3 finds its processes by this name
        path = os.pathsep.join((str(VENV / "bin"), os.defpath))
        return {"HOME": str(self.home), "USER": user, "PATH": path, "LANG": "C.UTF-8"}

    def run(self, program: str, *words: str | Path) -> str:
        """Run one of sr3's programs to its end and return its output."""
        done = subprocess.run(  # noqa: S603 - sr3's own programs
            [str(_program(program)), *map(str, words)],
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def write(self, *names: str) -> list[Path]:
        """Write files below the posted directory; the content of each is its name."""
        paths = [self.home / "weather" / "out" / name for name in names]
        for path, name in zip(paths, names, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        return paths

    def post(self, *names: str) -> str:
        """Write and announce files."""
        return self.run("sr3_post", "-c", "weather", *self.write(*names))

    def downloaded(self) -> dict[str, str]:
        """Return the downloaded files' contents, by name."""
        folder = self.home / "weather" / "in"
        found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))
        return {path.relative_to(folder).as_posix(): path.read_text() for path in found}

    @contextmanager
    def in_foreground(self) -> Iterator[Path]:
        """Run `sr3 foreground subscribe/weather` during the context; yield the path of its log."""
        said = self.home / "foreground.log"
        command: Sequence[str] = [str(_program("sr3")), "foreground", "subscribe/weather"]
        with said.open("w") as log:
            process = subprocess.Popen(  # noqa: S603 - sr3 itself
                command, env=self.environment, cwd=self.home, stdout=log, stderr=log, start_new_session=True
            )
            try:
                yield said
            finally:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    @contextmanager
    def in_background(self, *configurations: str) -> Iterator[None]:
        """Run all instances of configurations, or of the subscription if none is given, during the context."""
        chosen = configurations or ("subscribe/weather",)
        self.run("sr3", "start", *chosen)
        try:
            yield
        finally:
            self.run("sr3", "stop", *chosen)

    def backlog(self) -> int | None:
        """Return the backlog in the metrics of the subscription's first instance; None without metrics."""
        metrics = self.home / ".cache" / "sr3" / "metrics" / "subscribe_weather_01.json"
        if not metrics.exists():
            return None
        (of_broker,) = json.loads(metrics.read_text())["gather.message"].values()
        return int(of_broker["brokerQueuedMessageCount"])

    def status(self) -> dict[str, list[str]]:
        """Return the rows of `sr3 status`: state, processes, retries and more by configuration."""
        rows = (line.split() for line in self.run("sr3", "status").splitlines())
        return {row[0]: row[1:] for row in rows if row and row[0].endswith("/weather")}

    def instance_logs(self) -> list[str]:
        """Return the log of each background instance."""
        folder = self.home / ".cache" / "sr3" / "log"
        return [path.read_text() for path in sorted(folder.glob("subscribe_weather_*.log"))]

    def log(self, component: str) -> str:
        """Return the log of a component's first background instance."""
        path = self.home / ".cache" / "sr3" / "log" / f"{component}_weather_01.log"
        return path.read_text() if path.exists() else ""

    def queue(self) -> str:
        """Return the name of the queue, which sr3 generates."""
        (found,) = (self.home / ".cache" / "sr3" / "subscribe" / "weather").glob("*.qname")
        return found.read_text().strip()
