"""The installer of the Python environments of a checkout, which builds each again when its inputs change.

Runs before anything is installed, with any `python3`. It uses the standard library only, and no syntax that an old
Python cannot parse, so that it can report what is missing instead of failing with a syntax error.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
UV = "uv==0.13.9"
EMULATOR_ENVIRONMENT = ROOT / ".signalbox" / "emulator" / "venv"
REQUIREMENTS = ROOT / "requirements.txt"
EMULATOR_REQUIREMENTS = ROOT / "signalbox" / "local" / "emulator" / "requirements.txt"
MADE_HERE = (
    *(".venv", ".signalbox", "cdk.out"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis"),
)
MINIMUM = (3, 11)
TESTED = ("python3.13", "python3.12", "python3.11")
PROBE = "import sys, venv, ensurepip; print(sys.version_info[0], sys.version_info[1])"


def main(arguments: "list[str]") -> int:
    """Update both environments; with `--remove`, remove everything that this checkout's commands made in it."""
    try:
        with _lock():
            return _remove() if "--remove" in arguments else _make()
    except KeyboardInterrupt:
        return 130
    except subprocess.CalledProcessError as error:
        sys.stderr.write("{}\nerror: {} failed\n".format(error.output or "", " ".join(map(str, error.cmd))))
        return 1


def _make() -> int:
    stamps = {path: stamp(path, inputs) for path, inputs in _inputs().items()}
    stale = [path for path, expected in stamps.items() if not is_current(path, expected)]
    if not stale:
        return 0
    problem = unwritable_home()
    if problem is not None:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    python = chosen_python()
    if python is None:
        sys.stderr.write(_no_python())
        return 1
    _say("Setting up (once; later runs skip this)")
    for path in stale:
        _build(path, python)
        (path / "stamp").write_text(stamps[path])
    return 0


def prepare_emulator() -> None:
    """Build the emulator's environment unless it is current, from an environment with the requirements.

    Raises `CalledProcessError` when an installation fails.
    """
    with _lock():
        expected = stamp(EMULATOR_ENVIRONMENT, _inputs()[EMULATOR_ENVIRONMENT])
        if not is_current(EMULATOR_ENVIRONMENT, expected):
            _build(EMULATOR_ENVIRONMENT, sys.executable)
            (EMULATOR_ENVIRONMENT / "stamp").write_text(expected)


def unwritable_home() -> "str | None":
    """Return why the home folder has no place for caches, and what to do; None if it has one.

    Without a cache uv fails, and the CDK does not end.
    """
    home = Path("~").expanduser()
    caches = home / ".cache"
    try:
        with tempfile.TemporaryFile(dir=str(caches if caches.exists() else home)):
            return None
    except OSError as error:
        return (
            f"the home folder {str(home)!r} cannot be written ({error.strerror}), and uv and the CDK keep caches "
            "there: set HOME to a folder that can be written"
        )


def _inputs() -> "dict[Path, list[Path]]":
    """Return the input files of each environment; the main one comes first, since it contains uv."""
    return {
        ENVIRONMENT: [REQUIREMENTS, ROOT / "pyproject.toml", ROOT / "lambdas" / "requirements.in"],
        EMULATOR_ENVIRONMENT: [EMULATOR_REQUIREMENTS],
    }


def stamp(environment: Path, inputs: "list[Path]") -> str:
    """Return the stamp of an environment: a digest of its path, which its scripts contain, and of its inputs."""
    digest = hashlib.sha256(str(environment).encode())
    for path in inputs:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_current(environment: Path, expected: str) -> bool:
    """Return whether the environment was completed with the same inputs and still has its interpreter."""
    try:
        return (environment / "stamp").read_text() == expected and (environment / "bin" / "python").exists()
    except OSError:
        return False


def chosen_python() -> "str | None":
    """Return a new enough Python with venv: the running one if it is tested, else the newest tested one on PATH."""
    running = getattr(sys, "_base_executable", sys.executable)
    candidates = [running, *filter(None, map(shutil.which, TESTED))]
    if "python{}.{}".format(*sys.version_info) not in TESTED:
        candidates = [*candidates[1:], running]
    return next(filter(_fits, candidates), None)


def _fits(python: str) -> bool:
    probe = subprocess.run([python, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return probe.returncode == 0 and tuple(map(int, probe.stdout.split())) >= MINIMUM


def _no_python() -> str:
    needed, running = "{}.{}".format(*MINIMUM), "{}.{}".format(*sys.version_info)
    return (
        f"error: Signalbox needs Python {needed} or newer with venv and ensurepip; {sys.executable} is {running}, "
        "and no other was found.\n"
        "Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.12)\n"
        "or name one: make up PYTHON=/path/to/python3.12\n"
    )


def _build(environment: Path, python: str) -> None:
    """Build one environment; delete it first if it is unfinished (has no stamp) or has lost its interpreter."""
    if not ((environment / "stamp").exists() and (environment / "bin" / "python").exists()):
        _remove_tree(environment)
    with contextlib.suppress(FileNotFoundError):
        (environment / "stamp").unlink()
    if environment == ENVIRONMENT:
        _build_main(python)
        return
    _step("emulator environment", [uv(), "venv", "--allow-existing", "--python", python, environment])
    _install("emulator", environment, ["-r", EMULATOR_REQUIREMENTS])


def _build_main(python: str) -> None:
    if not (ENVIRONMENT / "bin" / "python").exists():
        _step("environment in .venv", [python, "-m", "venv", ENVIRONMENT])
    _step("uv", [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "--quiet", UV])
    _install("packages (about 1 GB with Spark)", ENVIRONMENT, ["-r", REQUIREMENTS])


def _install(name: str, environment: Path, packages: "list[str | Path]") -> None:
    command = [uv(), "pip", "install", "--python", environment / "bin" / "python", *packages]
    _step(name, command, {**index_of_pip(), **os.environ})


def uv() -> Path:
    """Return the uv of this Python's environment, or else that of `.venv`."""
    own = Path(sys.executable).with_name("uv")
    return own if own.exists() else ENVIRONMENT / "bin" / "uv"


def index_of_pip() -> "dict[str, str]":
    """Return the package index from pip's configuration file, which uv does not read, as an environment variable."""
    pip = [str(uv().with_name("python")), "-m", "pip", "config", "get", "global.index-url"]
    found = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return {} if found.returncode else {"PIP_INDEX_URL": found.stdout.strip()}


def _step(name: str, command: "list[str | Path]", environment: "Mapping[str, str]" = os.environ) -> None:
    """Run one command; print its name and duration, and its output only if it fails."""
    _say(f"  {name} ...", end="")
    started = time.monotonic()
    subprocess.run(
        [str(word) for word in command],
        cwd=str(ROOT),
        env=installer_environment(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    _say(f" {time.monotonic() - started:.1f} s")


def installer_environment(environment: "Mapping[str, str]") -> "dict[str, str]":
    """Return the environment for pip and uv: uv gets the package index and the certificates that are set for pip."""
    variables = dict(environment)
    variables.pop("VIRTUAL_ENV", None)
    variables.pop("PYTHONHOME", None)
    for pip_name, uv_name in (
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ):
        if pip_name in variables:
            variables.setdefault(uv_name, variables[pip_name])
    return variables


def _remove() -> int:
    """Stop the local stage, and remove the environments, the emulator's files and the caches."""
    signalbox = ENVIRONMENT / "bin" / "signalbox"
    if signalbox.exists():
        subprocess.run([str(signalbox), "local", "down", "--yes"], cwd=str(ROOT), check=False)
    for name in MADE_HERE:
        _remove_tree(ROOT / name)
    return 0


def _remove_tree(path: Path) -> None:
    """Remove a folder, its stamp first: if the removal is interrupted, the rest does not look complete."""
    with contextlib.suppress(FileNotFoundError):
        (path / "stamp").unlink()
    if path.exists():
        shutil.rmtree(str(path))


@contextlib.contextmanager
def _lock() -> "Iterator[None]":
    """Hold the lock that lets one setup at a time work in this checkout."""
    folder = ROOT / ".signalbox"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        folder.chmod(0o700)  # an earlier version made it for every user of the machine
    with (folder / "setup.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("Waiting for another setup of this checkout")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
