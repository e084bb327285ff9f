"""Archives from Maven Central: pinned versions, downloaded once, each compared with its SHA-256."""

import fcntl
import hashlib
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local import tools

CENTRAL = "https://repo1.maven.org/maven2"
PARALLEL_DOWNLOADS = 8
PATIENCE_SECONDS = 60
TRUST = "Behind a proxy that terminates TLS, set SSL_CERT_FILE to its certificates."


@dataclass(frozen=True, slots=True)
class Archive:
    """A JAR by its Maven coordinates, with the SHA-256 of its bytes in hexadecimal."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Return the name of its file; the organisation keeps equal names apart."""
        return f"{self.organisation}.{self.name}-{self.version}.jar"

    @property
    def url(self) -> str:
        """Return its address on Maven Central."""
        folder = f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}"
        return f"{CENTRAL}/{folder}/{self.name}-{self.version}.jar"


def archives(lines: Iterable[str]) -> tuple[Archive, ...]:
    """Return the archives of a list: a line has `organisation:name:version sha256`, a comment begins with `#`."""
    return tuple(_archive(line) for line in lines if line.strip() and not line.startswith("#"))


def _archive(line: str) -> Archive:
    coordinates, sha256 = line.split()
    organisation, name, version = coordinates.split(":")
    return Archive(organisation, name, version, sha256)


def install(name: str, wanted: Sequence[Archive], *, on_line: Callable[[str], None], size: str) -> Path:
    """Return the folder with these archives; download them first if they are missing.

    Each set of archives has a folder of its own, so a change of version installs anew. Raises `UnavailableError` if
    an archive cannot be downloaded or is not the pinned one.
    """
    versions = hashlib.sha256("".join(sorted(map(str, wanted))).encode()).hexdigest()[:12]
    home = tools.TOOLS / f"{name}-{versions}"
    if not home.exists():
        tools.TOOLS.mkdir(parents=True, exist_ok=True)
        with (tools.TOOLS / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():  # another process may have been faster
                on_line(f"downloading {name} from Maven Central, once ({size})")
                _download(home, wanted)
    return home


def _download(home: Path, wanted: Sequence[Archive]) -> None:
    """Download into a temporary folder and rename it when complete, so that an interruption leaves no half of it."""
    with tempfile.TemporaryDirectory(dir=tools.TOOLS) as folder, ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        unfinished = Path(folder) / "archives"
        unfinished.mkdir()
        for archive, content in zip(wanted, pool.map(_content, wanted), strict=True):
            (unfinished / archive.file_name).write_bytes(content)
        unfinished.rename(home)


def _content(archive: Archive) -> bytes:
    try:
        with urllib.request.urlopen(archive.url, timeout=PATIENCE_SECONDS) as response:
            content: bytes = response.read()
    except (OSError, urllib.error.HTTPError) as error:
        raise UnavailableError(f"could not download {archive.url}: {error}\n{TRUST}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != archive.sha256:
        raise UnavailableError(f"{archive.url} has the SHA-256 {found}, not the pinned {archive.sha256}")
    return content
