"""Builds of the Lambda layer and code, with bytecode and without Docker, and of the Glue modules."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from stacks.settings.config import Config

# In the wheel of `packages/signalbox-cdk`, the sources of the functions are next to the constructs.
PACKED = Path(__file__).resolve().parents[1] / "source"
ROOT = PACKED if PACKED.is_dir() else Path(__file__).resolve().parents[2]
CACHE = Path.home() / ".cache" / "signalbox-cdk" if PACKED.is_dir() else ROOT / ".signalbox" / "build"
LOCK = ROOT / "lambdas" / "requirements.lock"
# The Python of the functions on AWS, whatever Python builds them. Its runtime is on Amazon Linux 2023.
LAMBDA_PYTHON = "3.13"
# The oldest wheels that every package has; a test compares the locked ones with the libraries of the runtime.
LAMBDA_PLATFORM = "aarch64-manylinux_2_28"
# The locked packages of every capability, and those that only one imports, with what they require.
COMMON = ("aws-lambda-powertools", "jmespath", "typing-extensions")
PACKAGES_OF = {
    "rendezvous": ("maxminddb",),
    "splitting": ("jaq-rs", "jsonschema-rs"),
    "exchange": (),
    "live": ("cffi", "cryptography", "pycparser", "pyjwt"),
    "history": (),
}
# Modules that no function imports.
# The list of prices, which jobs read without the rest of the core.
PRICE_LIST = tuple(f"signalbox/{name}.py" for name in ("__init__", "history/__init__", "history/prices"))
LEFT_OUT = ("signalbox/cli", "signalbox/clients", "signalbox/flows", "signalbox/kombu", "signalbox/local")
# The version of the build: a change of the build must not reuse cached folders.
RECIPE = "4"


class PackagingError(Exception):
    """Raised when a build fails."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A built folder, and the digest of its inputs."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class BuildMachine:
    """The machine that runs a build: its Python version, and the platform of its wheels unless it is this machine."""

    python: str
    platform: str | None
    compiler: str | None
    """The path of an interpreter of that version, which writes the bytecode; without one, a build has none."""

    @property
    def inputs(self) -> tuple[bytes, ...]:
        """The parts of a build's digest."""
        return tuple(
            part.encode() for part in (self.python, self.platform or _this_machine(), str(bool(self.compiler)))
        )


def target(*, local: bool, python: str = LAMBDA_PYTHON) -> BuildMachine:
    """Return this machine with the running Python, or Lambda with `python`."""
    if local:
        return BuildMachine(_running_python(), platform=None, compiler=sys.executable)
    return BuildMachine(python, platform=LAMBDA_PLATFORM, compiler=interpreter(python))


def interpreter(python: str) -> str | None:
    """Return the path of an interpreter of a version: the running one, or the one on PATH; None without one that runs.

    A command on PATH may be a shim of a version that is not selected.
    """
    if python == _running_python():
        return sys.executable
    found = shutil.which(f"python{python}")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:  # noqa: S603  # Python
        return None
    return found


def _running_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def packages(parts: Iterable[str], target: BuildMachine, *, lock: Path = LOCK, cache: Path = CACHE) -> Folder:
    """Return the folder of the locked packages that capabilities import, for a target, built unless cached."""
    locked = _locked({*COMMON, *(name for part in parts for name in PACKAGES_OF[part])}, lock.read_text())
    digest = _digest([(b"lock", locked.encode()), *((b"target", part) for part in target.inputs)])
    return _built("packages", digest, lambda folder: _install(folder, locked, target), cache=cache)


def _locked(names: Collection[str], lock: str) -> str:
    """Return the lines of a lock that concern these packages: each begins with a name, and has its hashes below."""
    requirements = re.split(r"^(?=[^\s#])", lock, flags=re.MULTILINE)
    return "".join(one for one in requirements if one.partition("==")[0] in names)


def code(config: Config, target: BuildMachine, *, cache: Path = CACHE) -> Folder:
    """Return the folder of the functions' code with the deployment's settings files, built unless cached."""
    files = dict(_code_files(config))
    inputs = [(b"target", part) for part in target.inputs]
    inputs += [(name.encode(), path.read_bytes()) for name, path in sorted(files.items())]
    return _built("code", _digest(inputs), lambda folder: _copy_compiled(files, folder, target), cache=cache)


def glue_modules(*, with_core: bool = False, cache: Path = CACHE) -> Folder:
    """Return the folder of the modules that Glue scripts import; `with_core` adds the core and the adapters."""
    files = {**dict(_modules("glue_jobs")), **{name: ROOT / name for name in PRICE_LIST}}
    if with_core:
        files |= _modules("signalbox")
    digest = _digest((name.encode(), path.read_bytes()) for name, path in files.items())
    return _built("glue", digest, lambda folder: _copy(files, folder), cache=cache)


def _this_machine() -> str:
    uname = os.uname()
    return f"{uname.sysname}-{uname.machine}".lower()


def _digest(inputs: Iterable[tuple[bytes, bytes]]) -> str:
    digest = sha256(RECIPE.encode())
    for name, content in inputs:
        digest.update(b"%d %b %d %b" % (len(name), name, len(content), content))
    return digest.hexdigest()


def _modules(package: str) -> Iterable[tuple[str, Path]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(LEFT_OUT):
            yield name, path


def _code_files(config: Config) -> Iterable[tuple[str, Path]]:
    for package in ("signalbox", "lambdas"):
        yield from _modules(package)
    for path in sorted((ROOT / "web").iterdir()):
        yield path.relative_to(ROOT).as_posix(), path
    if config.bridge_list_file:
        yield "settings/bridges.jsonl", config.bridge_list_file
    if config.country_database_file:
        yield "settings/country.mmdb", config.country_database_file


def _built(name: str, digest: str, fill: Callable[[Path], None], *, cache: Path) -> Folder:
    path = cache / f"{name}-{digest[:32]}"
    if not path.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache) as scratch:
            fresh = Path(scratch) / name
            fresh.mkdir()
            fill(fresh)
            _publish(fresh, path)
    return Folder(path=path, digest=digest)


def _publish(fresh: Path, path: Path) -> None:
    try:
        fresh.rename(path)
    except OSError:
        # A concurrent synthesis may have published the same folder.
        if not path.is_dir():
            raise


def _copy(files: dict[str, Path], folder: Path) -> None:
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)


def _copy_compiled(files: dict[str, Path], folder: Path, target: BuildMachine) -> None:
    _copy(files, folder)
    _compile(folder, target, prefix="/var/task")


def _install(folder: Path, locked: str, target: BuildMachine) -> None:
    packages, lock = folder / "python", folder / "requirements.lock"
    lock.write_text(locked)
    where = ["--python-platform", target.platform, "--python-version", target.python] if target.platform else []
    fixed = ["--quiet", "--no-config", "--only-binary", ":all:", "--require-hashes", "--link-mode", "copy"]
    _run([_uv(), "pip", "install", *fixed, *where, "--python", sys.executable, "--target", packages, "-r", lock])
    lock.unlink()
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (packages / ".lock").unlink(missing_ok=True)
    _compile(packages, target, prefix="/opt/python")


def _uv() -> str:
    try:
        from uv import find_uv_bin  # noqa: PLC0415 - only a build needs it
    except ModuleNotFoundError as error:
        raise PackagingError(f'uv is not installed for {sys.executable}: pip install ".[deploy]"') from error
    return find_uv_bin()


def _compile(folder: Path, target: BuildMachine, *, prefix: str) -> None:
    # The task folder is read-only in Lambda: without bytecode every cold start compiles again.
    if target.compiler is None:
        return
    options = ["-q", "--invalidation-mode", "unchecked-hash", "-p", prefix]
    _run([target.compiler, "-m", "compileall", *options, "-s", folder, folder])


def _run(command: Sequence[str | Path]) -> None:
    # A fixed hash seed orders sets of constants equally in every build.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603  # our own arguments
    if done.returncode:
        raise PackagingError(
            f"{Path(command[0]).name} {command[1]} failed: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
