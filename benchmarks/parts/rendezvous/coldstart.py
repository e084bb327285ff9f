"""The benchmark of cold starts: sizes of the deployed assets, and import times with nothing else on the path."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.shared.runtime import link_runtime
from stacks.settings.config import Config
from stacks.shared import packaging

FUNCTIONS = ("offer", "poll", "answer", "client", "page", "sweep")
REPEATS = 7
PROGRAM = """
import json, os, sys, time
code, layer, runtime, name = sys.argv[1:]
sys.path[:0] = [code, layer, runtime]
os.environ.update(AWS_DEFAULT_REGION="us-east-1", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
marks = [time.perf_counter()]
import botocore.session
marks.append(time.perf_counter())
__import__("lambdas.rendezvous." + name)
marks.append(time.perf_counter())
session = botocore.session.get_session()
clients = [session.create_client(service) for service in ("sqs", "dynamodb", "firehose")]
marks.append(time.perf_counter())
print(json.dumps([(b - a) * 1000 for a, b in zip(marks, marks[1:])]))
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a deployed folder: unpacked bytes, bytes of bytecode and number of files."""

    unpacked_bytes: int
    bytecode_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Start:
    """Medians for one function in a fresh interpreter, in milliseconds."""

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
    # -I and -S exclude the environment and all installed packages.
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(code), str(layer), str(runtime), name]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(REPEATS)]
    return Start(*(median(times) for times in zip(*runs, strict=True)))


def _size(folder: Path) -> Size:
    files = [path for path in folder.rglob("*") if path.is_file()]
    sizes = {path: path.stat().st_size for path in files}
    bytecode = sum(size for path, size in sizes.items() if path.suffix == ".pyc")
    return Size(sum(sizes.values()), bytecode, len(files))
