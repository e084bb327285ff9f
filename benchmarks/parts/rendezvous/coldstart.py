"""The benchmark of cold starts: sizes of the deployed assets, and import times with nothing else on the path."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.shared.imports import import_function
from benchmarks.shared.runtime import link_runtime
from stacks.settings.config import Config
from stacks.shared import packaging

FUNCTIONS = ("offer", "poll", "answer", "client", "page", "sweep")
REPEATS = 7
SERVICES = ("sqs", "dynamodb", "firehose")


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a deployed folder: unpacked bytes, bytes of bytecode and number of files."""

    unpacked_bytes: int
    bytecode_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Start:
    """Medians for one function in a new interpreter, in processor milliseconds."""

    botocore_ms: float
    import_ms: float
    clients_ms: float


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The sizes of the two assets, and the start times by function."""

    code: Size
    packages: Size
    starts: dict[str, Start]


def measure(say: Callable[[str], None]) -> ColdStart:
    """Build the deployed assets for this machine, and start each function from them."""
    code, layer = packaging.code(Config(local=True)).path, packaging.packages(local=True).path
    with tempfile.TemporaryDirectory() as folder:
        runtime = Path(folder)
        link_runtime(runtime)
        starts = {name: _start(code, layer / "python", runtime, name=name, say=say) for name in FUNCTIONS}
    return ColdStart(_size(code), _size(layer), starts)


def _start(code: Path, layer: Path, runtime: Path, *, name: str, say: Callable[[str], None]) -> Start:
    say(name)
    function = f"rendezvous.{name}"
    runs = [
        import_function(function, code=code, layer=layer, runtime=runtime, services=SERVICES) for _ in range(REPEATS)
    ]
    return Start(*(median(times) for times in zip(*((run.sdk, run.rest, run.clients) for run in runs), strict=True)))


def _size(folder: Path) -> Size:
    files = [path for path in folder.rglob("*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in files}
    bytecode = sum(size for path, size in sizes.items() if path.suffix == ".pyc")
    return Size(sum(sizes.values()), bytecode, len(files))
